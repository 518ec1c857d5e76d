package agui_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/decktest"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/agui"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view/viewtest"
)

// In random logs with questions, whole messages in runs, plans and several threads: a
// client that connects anywhere and stays until its stream ends shows what a client
// shows that connects then.
func TestConnectToRandomLogs(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 30
	}
	waited := 0
	for seed := range seeds {
		events := ordered(t, viewtest.Log(seed, viewtest.Options{Events: 120, Threads: 2}))
		switch seed % 3 {
		case 1:
			events = withIDsOfRuns(events)
		case 2:
			events = ordered(t, withOddIDs(events, seed))
		}
		for cut := 5 + int(seed%7); cut < len(events); cut += 9 {
			synctest.Test(t, func(t *testing.T) {
				waited += stayFrom(t, events, cut, fmt.Sprintf("seed %d, event %d", seed, cut))
			})
		}
	}
	if waited < 100 {
		t.Errorf("only %d clients were connected when events came", waited)
	}
}

// withIDsOfRuns returns the log of an agent that counts its messages and calls from 0 in
// each run.
func withIDsOfRuns(log []tapedeck.Event) (out []tapedeck.Event) {
	names, counts := map[string]string{}, map[string]int{}
	for _, e := range log {
		if e.Type == tapedeck.MessagesSnapshot || e.Channel == tapedeck.ChannelOf(tapedeck.ActivitySnapshot) {
			continue // it names messages of several runs, or shares its ids with other runs
		}
		var d map[string]any
		if json.Unmarshal(e.Data, &d) != nil || e.Type == tapedeck.MessageAdded {
			out = append(out, e)
			continue
		}
		for _, member := range []string{"messageId", "parentMessageId", "toolCallId"} {
			id, ok := d[member].(string)
			if !ok {
				continue
			}
			kind := "m"
			if member == "toolCallId" {
				kind = "c"
			}
			was := e.ThreadName() + kind + id
			if names[was] == "" {
				run := e.ThreadName() + kind + e.Invocation
				names[was] = fmt.Sprint(kind, counts[run])
				counts[run]++
			}
			d[member] = names[was]
		}
		e.Data, _ = json.Marshal(d)
		out = append(out, e)
	}
	return out
}

// withOddIDs returns the log of an agent that has few ids, which it uses for all kinds of
// messages and calls, and answers calls twice, or that nobody has made.
func withOddIDs(log []tapedeck.Event, seed uint64) (out []tapedeck.Event) {
	r := rand.New(rand.NewPCG(seed, 2))
	names, few := map[string]string{}, []string{"a", "b", "c", "d"}
	for _, e := range log {
		var d map[string]any
		if e.Type == tapedeck.MessagesSnapshot || e.Type == tapedeck.MessageAdded || json.Unmarshal(e.Data, &d) != nil {
			out = append(out, e)
			continue
		}
		for _, member := range []string{"messageId", "parentMessageId", "toolCallId"} {
			if id, ok := d[member].(string); ok {
				was := e.ThreadName() + strings.TrimPrefix(member, "parent") + id
				if names[was] == "" {
					names[was] = few[r.IntN(len(few))]
				}
				d[member] = names[was]
			}
		}
		e.Data, _ = json.Marshal(d)
		if out = append(out, e); e.Type == tapedeck.ToolCallEnd && r.IntN(3) == 0 {
			e.Type, e.Channel = tapedeck.ToolCallResult, tapedeck.ChannelOf(tapedeck.ToolCallResult)
			e.Data = fmt.Appendf(nil, `{"messageId":%q,"toolCallId":%q,"content":"odd %d"}`, few[r.IntN(len(few))], few[r.IntN(len(few))], len(out))
			out = append(out, e)
		}
	}
	return out
}

// ordered returns a log as the engine would have appended it: with the ends of what a
// run leaves open, and without events that do not fit.
func ordered(t *testing.T, log []tapedeck.Event) (out []tapedeck.Event) {
	t.Helper()
	v := order.NewVerifier()
	for _, e := range log {
		e.Offset = 0
		list := []tapedeck.Event{e}
		if e.Type == tapedeck.RunFinished {
			e.Data = nil // some ends in these logs have a shape that the engine refuses
			list = append(v.Closing(e.Invocation), e)
		}
		next := v.Clone()
		list, err := next.Accept(list)
		if err == nil {
			out, v = append(out, list...), next
		}
	}
	if len(out) < len(log)/2 {
		t.Fatalf("only %d of %d events fit", len(out), len(log))
	}
	return out
}

// stayFrom compares a client that connects at a cut with a later one. It returns 1 if
// the first one got later events.
func stayFrom(t *testing.T, events []tapedeck.Event, cut int, what string) (waited int) {
	store := hub.New(memory.New(memory.Options{}))
	w := &world{&decktest.World{TB: t, Handler: agui.New(agui.Options{
		Sessions: store, Views: projection.New(projection.Options{Store: store}), Verbs: noVerbs{},
	})}}
	if _, err := store.Create(t.Context(), tapedeck.Spec{ID: "s", Events: events[:1]}); err != nil {
		t.Fatal(err)
	}
	add := func(list ...tapedeck.Event) {
		if _, err := store.Append(t.Context(), tapedeck.Append{Session: "s", Events: list}); err != nil {
			t.Fatal(err)
		}
	}
	add(events[1:cut]...)
	r := w.open("/agui/any/connect", `{"protocolVersion":"1.0","threadId":"s"}`)
	for _, e := range events[cut:] {
		synctest.Wait()
		select {
		case <-r.Done:
		default:
			add(e)
			waited = 1
			continue
		}
		break
	}
	synctest.Wait()
	select {
	case <-r.Done:
	default: // the log ends in the middle of a run
		r.Disconnect()
		return 0
	}
	stayed, late := &frontend{t: t}, &frontend{t: t}
	stayed.receive(r.events())
	again := w.open("/agui/any/connect", `{"protocolVersion":"1.0","threadId":"s"}`)
	synctest.Wait()
	select {
	case <-again.Done:
	default: // the next run has begun with the same event
		again.Disconnect()
		return 0
	}
	late.receive(again.events())
	for _, f := range []*frontend{stayed, late} {
		f.state = nil // this front end cannot apply patches
		for _, m := range f.messages {
			delete(m, "error")                                 // no event can have it
			if m["role"] == "activity" || m["content"] == "" { // an empty text, or none
				delete(m, "content")
			}
		}
	}
	stayed.same(t, late, what)
	return waited
}

// noVerbs has one agent, and carries out nothing.
type noVerbs struct{ agui.Verbs }

func (noVerbs) Agents() []tapedeck.Agent { return []tapedeck.Agent{{Name: "any"}} }
