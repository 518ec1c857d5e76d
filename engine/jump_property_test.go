package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A step is a verb with numbers. They select arguments from those that are
// possible when the step runs.
type step struct {
	Verb         string
	A, B, Thread int
}

var laneNames = []string{tapedeck.MainThread, "t", "u"}

// line returns the step as a line for [tape.do].
func (s step) line(p *tape, n int) string {
	on := map[bool]string{true: " on " + laneNames[s.Thread%3]}[s.Thread < 3] // else all threads
	offset := int64(s.A) % (p.head(p.id).Head + 1)
	switch s.Verb {
	case "task", "wait", "fail", "again":
		word := map[string]string{"task": "say", "wait": "wait", "fail": "fail", "again": "again"}[s.Verb] + strconv.Itoa(n)
		return "task " + word + " on " + laneNames[s.Thread%3]
	case "replace":
		return fmt.Sprintf("replace to %d by say%d on %s", offset, n, laneNames[s.Thread%3])
	case "resume":
		return "resume r" + strconv.Itoa(n) + on
	case "to":
		return fmt.Sprintf("rewind to %d%s", offset, on)
	case "overwrite":
		return fmt.Sprintf("overwrite from %d%s", offset, on)
	case "clear":
		return "clear" + on
	case "fork":
		return fmt.Sprintf("fork f%d at %d", n, offset)
	case "before":
		if len(p.invocations) == 0 {
			return "undo"
		}
		words := make([]string, 0, len(p.invocations))
		for w := range p.invocations {
			words = append(words, w)
		}
		slices.Sort(words)
		return "rewind before " + words[s.A%len(words)] + on
	case "undo":
		if s.B%2 == 0 || len(p.markers) == 1 {
			return "undo"
		}
		return fmt.Sprintf("undo %d", 1+s.A%(len(p.markers)-1))
	}
	return "cancel"
}

// After any sequence of verbs, the active events are those that the rule gives,
// the links between the jumps are complete, the catalogue has the status of the
// active runs, and a refused verb has appended nothing of its own.
func TestJumpsProperty(t *testing.T) {
	verbs := []string{"task", "task", "again", "wait", "replace", "fail", "resume", "cancel", "to", "to", "before", "before", "overwrite", "clear", "undo", "undo", "fork"}
	steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
		return step{
			rapid.SampledFrom(verbs).Draw(r, "verb"), rapid.IntRange(0, 1000).Draw(r, "a"),
			rapid.IntRange(0, 1).Draw(r, "b"), rapid.IntRange(0, 5).Draw(r, "thread"),
		}
	}), 1, 25)
	rapid.Check(t, func(r *rapid.T) {
		script := steps.Draw(r, "script")
		var lines []string
		var broken error // told outside of the bubble, where the test can be stopped
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, echo)
			w.create("s")
			p := w.tape("s")
			for n, s := range script {
				line := s.line(p, n)
				lines = append(lines, line)
				before := p.log(p.id)
				err := p.do(line)
				synctest.Wait()
				if broken = p.law(s, before, err); broken != nil {
					return
				}
			}
		})
		if broken != nil {
			r.Fatalf("%s: %v", strings.Join(lines, "; "), broken)
		}
	})
}

// law checks the invariants after a step.
func (p *tape) law(s step, before []tapedeck.Event, err error) error {
	if k := tapedeck.KindOf(err); err != nil && k != tapedeck.Conflict && k != tapedeck.NotFound && k != tapedeck.Invalid {
		return err
	}
	events := p.log(p.id)
	entry := p.head(p.id)
	isJump := slices.Contains([]string{"to", "before", "overwrite", "clear", "undo"}, s.Verb)
	if err != nil && (isJump || s.Verb == "replace") && len(events) != len(before) {
		return fmt.Errorf("%w, and %d events were appended", err, len(events)-len(before))
	}
	timeline := view.NewTimeline(links(p, entry.LastJump))
	if n := len(timeline.Jumps()); n != countJumps(events) {
		return fmt.Errorf("%d jumps are linked of %d", n, countJumps(events))
	}
	for _, name := range laneNames {
		want := map[int64]bool{}
		for _, ev := range inForce(events, name) {
			want[ev.Offset] = true
		}
		for _, ev := range events {
			if ev.Channel != tapedeck.ChannelSession && ev.ThreadName() == name && timeline.Has(ev.Offset, name, entry.Head) != want[ev.Offset] {
				return fmt.Errorf("the event at %d is active: %v", ev.Offset, !want[ev.Offset])
			}
		}
		if err == nil && isJump && (p.last.Thread == "" || p.last.Thread == name) {
			if got, want := inForce(events, name), inForce(events[:p.last.To], name); len(got) != len(want) {
				return fmt.Errorf("%d events of %s are active, want %d", len(got), name, len(want))
			}
		}
	}
	if want := statusOf(events, len(entry.Runs) > 0); entry.Status != want {
		return fmt.Errorf("the status is %s, want %s", entry.Status, want)
	}
	return nil
}

// links follows the jumps of a session from the newest one.
func links(p *tape, offset int64) []tapedeck.Jump {
	events := p.log(p.id)
	var jumps []tapedeck.Jump
	for offset > 0 {
		j, ok := events[offset].Jump()
		if !ok {
			p.Fatalf("there is no jump at %d", offset)
		}
		jumps = append(jumps, j)
		offset = j.Previous
	}
	return jumps
}

func countJumps(events []tapedeck.Event) int {
	n := 0
	for _, ev := range events {
		if _, ok := ev.Jump(); ok {
			n++
		}
	}
	return n
}

// statusOf returns the status of the active run that ended last. A jump and a fork
// end the runs that are open there.
func statusOf(events []tapedeck.Event, running bool) tapedeck.Status {
	if running {
		return tapedeck.StatusRunning
	}
	status, end := tapedeck.StatusIdle, int64(-1)
	asked := slices.ContainsFunc(laneNames, func(name string) bool {
		return slices.ContainsFunc(inForce(events, name), func(ev tapedeck.Event) bool {
			return ev.Type == tapedeck.MessageAdded && ev.ThreadName() == name
		})
	})
	for _, name := range laneNames {
		var entry tapedeck.Session
		open := false
		for _, ev := range withCuts(events, name) {
			was := open
			switch ev.Type {
			case tapedeck.RunStarted:
				open = true
				continue
			case tapedeck.RunFinished, tapedeck.RunError:
				open, entry.Runs = false, nil
				entry.Apply(&ev)
			case tapedeck.SessionForked, tapedeck.SessionRewound, tapedeck.SessionCleared, tapedeck.SessionOverwritten:
				open, entry.Status = false, tapedeck.StatusInterrupted
			default:
				continue
			}
			if was && ev.Offset > end {
				status, end = entry.Status, ev.Offset
			}
		}
	}
	if asked && !status.Begun() {
		return tapedeck.StatusPending // the user's message is active, its run is not
	}
	return status
}

// withCuts is [inForce] with the jumps that led there, and the forks.
func withCuts(events []tapedeck.Event, thread string) []tapedeck.Event {
	before := make([][]tapedeck.Event, len(events)+1)
	for i, ev := range events {
		before[i+1] = before[i]
		j, ok := ev.Jump()
		switch {
		case ok && (j.Thread == "" || j.Thread == thread):
			before[i+1] = append(slices.Clone(before[j.To]), ev)
		case ev.Type == tapedeck.SessionForked, ev.Channel != tapedeck.ChannelSession && ev.ThreadName() == thread:
			before[i+1] = append(slices.Clone(before[i]), ev)
		}
	}
	return before[len(events)]
}
