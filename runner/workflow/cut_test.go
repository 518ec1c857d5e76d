package workflow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// cutOff walks a process that is cut off when n events are in the log, as often as every
// n events, and continues each time.
func (h *host) cutOff(n int) error {
	h.cutAt = 0
	if err := h.begin(context.Background(), ""); err != nil {
		return err
	}
	for {
		h.cutAt = len(h.log) + n
		if err := h.walk(context.Background(), ""); !errors.Is(err, errCut) {
			return err
		}
		if h.cutAt > 2000 {
			return errors.New("it does the same again and again")
		}
		h.drop()
	}
}

// drop empties the inbox, as a restart does: what was in it is in the log.
func (h *host) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inbox = nil
	select {
	case <-h.ready:
	default:
	}
}

// TestWalksThatAreCutOff: wherever a walk is cut off, it takes the same decisions.
func TestWalksThatAreCutOff(t *testing.T) {
	for _, tt := range walks {
		if tt.again {
			continue // cut off after each event, it would only begin
		}
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				whole := newHost(t, withEvents(tt.xml), tt.variables...)
				whole.agent = tt.agent
				w, err := whole.run()
				want, variables := fmt.Sprint(err), values(w)
				for n := 1; n <= 5; n++ {
					h := newHost(t, withEvents(tt.xml), tt.variables...)
					h.agent = tt.agent
					if got := fmt.Sprint(h.cutOff(n)); got != want {
						t.Errorf("cut off every %d events it ended with %s, want %s", n, got, want)
					}
					if got := values(h.state()); got != variables {
						t.Errorf("cut off every %d events the variables are %s, want %s", n, got, variables)
					}
					h.checkOnce()
					if a, b := sorted(h.trace()), sorted(whole.trace()); a != b {
						t.Errorf("cut off every %d events:\n%s\nwant\n%s", n, h.trace(), whole.trace())
					}
				}
			})
		})
	}
}

func sorted(trace string) string {
	words := strings.Fields(trace)
	counts := map[string]int{}
	for _, w := range words {
		counts[w]++
	}
	return fmt.Sprint(counts)
}

// checkOnce checks that each activation began and ended once, and each thread worked
// once.
func (h *host) checkOnce() {
	h.Helper()
	begun, ended := map[string]int{}, map[string]int{}
	for ev := range h.events(func(*tapedeck.Event) bool { return true }) {
		switch ev.Type {
		case tapedeck.WorkflowEntered:
			d, _ := payload.DecodeAs[payload.WorkflowEntered](ev)
			begun[d.Activation]++
		case tapedeck.WorkflowLeft:
			d, _ := payload.DecodeAs[payload.WorkflowLeft](ev)
			ended[d.Activation]++
		}
	}
	for id, n := range begun {
		if n != 1 || ended[id] > 1 {
			h.Errorf("activation %s began %d times and ended %d times", id, n, ended[id])
		}
	}
	for thread := range h.once {
		if h.calls[thread] != 1 {
			h.Errorf("%s worked %d times", thread, h.calls[thread])
		}
	}
}

// A maker draws well-formed processes: blocks in a row, each with one way in and one way
// out.
type maker struct {
	*rapid.T
	n     int
	nodes strings.Builder
	flows []string
}

func (m *maker) id(prefix string) string {
	m.n++
	return fmt.Sprint(prefix, m.n)
}

// block adds a block and returns its first and its last element.
func (m *maker) block(depth int) (first, last string) {
	kinds := 9
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(m.T, "kind") {
	case 0:
		id := m.id("T")
		m.nodes.WriteString(agentTask(id, id+" {{ n }}", "r_"+id))
		return id, id
	case 1:
		id := m.id("W")
		m.nodes.WriteString(timer("intermediateCatchEvent", `id="`+id+`"`, fmt.Sprintf("PT%dS", rapid.IntRange(0, 9).Draw(m.T, "seconds"))))
		return id, id
	case 2:
		id := m.id("L")
		fmt.Fprintf(&m.nodes, `<serviceTask id="%s" tapedeck:agent="a" tapedeck:prompt="p {{ item }}" tapedeck:output="r"><multiInstanceLoopCharacteristics isSequential="%v"><extensionElements><zeebe:loopCharacteristics inputCollection="= list" inputElement="item" outputCollection="all_%s" outputElement="= r"/></extensionElements></multiInstanceLoopCharacteristics></serviceTask>`,
			id, rapid.Bool().Draw(m.T, "sequential"), id)
		return id, id
	case 3:
		id := m.id("N")
		m.nodes.WriteString(script(id, "v_"+id+" = n + "+fmt.Sprint(m.n)))
		return id, id
	case 4:
		return m.branches("parallel", depth)
	case 5:
		return m.branches("inclusive", depth)
	case 6:
		return m.escalates(depth)
	case 7:
		id := m.compensates(depth)
		return id, id
	}
	id := m.sub(depth, false)
	return id, id
}

// escalates adds a sub-process that throws an escalation, which an event at its boundary
// catches: either what follows in the sub-process goes on, or what follows the event.
func (m *maker) escalates(depth int) (first, last string) {
	id, at, caught, join := m.sub(depth, true), m.id("B"), m.id("N"), m.id("M")
	interrupts := rapid.Bool().Draw(m.T, "interrupts")
	m.nodes.WriteString(boundary(at, id, fmt.Sprint(interrupts), onLate) + script(caught, "v_"+caught+" = n"))
	m.flows = append(m.flows, at+">"+caught)
	if !interrupts {
		return id, id
	}
	m.nodes.WriteString(gateway("exclusive", join))
	m.flows = append(m.flows, id+">"+join, caught+">"+join)
	return id, join
}

// compensates adds a sub-process in which some tasks and what is around them are compensated.
func (m *maker) compensates(depth int) (id string) {
	around := &maker{T: m.T, n: m.n}
	x := around.id("X")
	first, last := around.undone(depth-1, "done_"+x)
	around.nodes.WriteString(rapid.SampledFrom([]string{throw(x, onCompensation), throw(x, goesOn), compensates(x, last)}).Draw(m.T, "throws"))
	id, m.n = around.id("P"), around.n
	fmt.Fprintf(&m.nodes, `<subProcess id="%s"><startEvent id="S%[1]s"/><endEvent id="E%[1]s"/>%s%s</subProcess>`, id, around.nodes.String(), flowsOf(append(around.flows, "S"+id+">"+first, last+">"+x, x+">E"+id)...))
	return id
}

// undone adds tasks with handlers, in sub-processes or not. The tasks add to a variable, which
// the handlers see.
func (m *maker) undone(depth int, done string) (first, last string) {
	for i := range rapid.IntRange(1, 3).Draw(m.T, "undone") {
		id := m.id("T")
		if depth > 0 && rapid.Bool().Draw(m.T, "in") {
			inner := &maker{T: m.T, n: m.n}
			a, _ := inner.undone(depth-1, done)
			m.n = inner.n
			fmt.Fprintf(&m.nodes, `<subProcess id="%s"><startEvent id="S%[1]s"/>%s%s</subProcess>`, id, inner.nodes.String(), flowsOf(append(inner.flows, "S"+id+">"+a)...))
		} else {
			m.nodes.WriteString(script(id, strings.ReplaceAll(does(id), "done", done)) + handled(id, strings.Replace(agentTask("u"+id, id+" {{ "+done+" }}", "r_"+id), "<serviceTask", `<serviceTask isForCompensation="true"`, 1)))
		}
		if i == 0 {
			first = id
		} else {
			m.flows = append(m.flows, last+">"+id)
		}
		last = id
	}
	return first, last
}

func (m *maker) branches(kind string, depth int) (first, last string) {
	first, last = m.id("F"), m.id("J")
	m.nodes.WriteString(gateway(kind, first) + gateway(kind, last))
	for i := range rapid.IntRange(2, 3).Draw(m.T, "branches") {
		a, b := m.row(depth - 1)
		condition := ""
		if kind == "inclusive" && i > 0 {
			condition = ":n > " + fmt.Sprint(rapid.IntRange(0, 4).Draw(m.T, "bound"))
		}
		m.flows = append(m.flows, first+">"+a+condition, b+">"+last)
	}
	return first, last
}

func (m *maker) sub(depth int, throws bool) (id string) {
	id = m.id("P")
	inner := &maker{T: m.T, n: m.n}
	a, b := inner.row(depth - 1)
	if throws {
		x := inner.id("X")
		c, d := inner.row(depth - 1)
		inner.nodes.WriteString(throw(x, onLate))
		inner.flows = append(inner.flows, b+">"+x, x+">"+c)
		b = d
	}
	e := inner.id("E")
	inner.flows = append(inner.flows, b+">"+e)
	if throws || rapid.Bool().Draw(m.T, "start") { // what throws must not stop another branch at any time
		s := inner.id("S")
		fmt.Fprintf(&inner.nodes, `<startEvent id="%s"/>`, s)
		inner.flows = append(inner.flows, s+">"+a)
	} else { // it begins at a and at another element
		_, b = inner.row(depth - 1)
		inner.flows = append(inner.flows, b+">"+e)
	}
	m.n = inner.n
	fmt.Fprintf(&m.nodes, `<subProcess id="%s"><endEvent id="%s"/>%s%s</subProcess>`, id, e, inner.nodes.String(), flowsOf(inner.flows...))
	return id
}

func (m *maker) row(depth int) (first, last string) {
	for i := range rapid.IntRange(1, 3).Draw(m.T, "row") {
		a, b := m.block(depth)
		if i == 0 {
			first = a
		} else {
			m.flows = append(m.flows, last+">"+a)
		}
		last = b
	}
	return first, last
}

// TestRandomProcesses: a process that is cut off at random and continues has the same
// variables at its end, and each activation happened once.
func TestRandomProcesses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &maker{T: rt}
		a, b := m.row(2)
		m.flows = append(m.flows, "S>"+a, b+">E")
		xml := withEscalations(diagramOf(startEnd+m.nodes.String(), m.flows...))
		given := []any{"n", rapid.IntRange(0, 4).Draw(rt, "n"), "list", []int{1, 2, 3}[:rapid.IntRange(0, 3).Draw(rt, "items")]}
		cut := rapid.IntRange(1, 12).Draw(rt, "cut")
		synctest.Test(t, func(t *testing.T) {
			whole := newHost(t, xml, given...)
			whole.agent = slowly
			w, err := whole.run()
			if err != nil {
				t.Errorf("%v\n%s", err, xml)
				return
			}
			h := newHost(t, xml, given...)
			h.agent = slowly
			if err := h.cutOff(cut); err != nil {
				t.Errorf("cut off every %d events: %v\n%s", cut, err, xml)
				return
			}
			if got, want := values(h.state()), values(w); got != want {
				t.Errorf("the variables are %s, want %s\n%s", got, want, xml)
			}
			if got, want := sorted(h.trace()), sorted(whole.trace()); got != want {
				t.Errorf("%s\nwant %s\n%s", h.trace(), whole.trace(), xml)
			}
			h.checkOnce()
		})
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// slowly says its prompt after some time.
func slowly(ctx context.Context, d tapedeck.Delegation) (tapedeck.Delegated, error) {
	t := time.NewTimer(time.Duration(len(d.Thread)) * time.Second)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return tapedeck.Delegated{Status: tapedeck.StatusComplete, Text: d.Task}, nil
}
