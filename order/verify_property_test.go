package order

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// anyContent draws an event that may or may not be allowed. It uses few ids, so
// that many events are.
func anyContent(t *rapid.T) tapedeck.Event {
	message, call, step := rapid.SampledFrom([]string{"m", "n"}), rapid.SampledFrom([]string{"c", "d"}), rapid.SampledFrom([]string{"x", "y"})
	sub := rapid.SampledFrom([]string{"s", "t", "u", "v"})
	tag := payload.Attributed{SubagentRunID: rapid.SampledFrom([]string{"", "", "", "s", "t"}).Draw(t, "tag")}
	m, c, x, s := message.Draw(t, "message"), call.Draw(t, "call"), step.Draw(t, "step"), sub.Draw(t, "subagent")
	text := payload.NewMessage(m, payload.RoleAssistant, "x")
	text.SubagentRunID = tag.SubagentRunID
	p := rapid.SampledFrom([]payload.Payload{
		payload.TextMessageStart{MessageID: m, Attributed: tag}, payload.TextMessageContent{MessageID: m, Delta: "x", Attributed: tag}, payload.TextMessageEnd{MessageID: m, Attributed: tag},
		payload.TextMessageChunk{MessageID: m, Delta: "x", Attributed: tag}, payload.TextMessageChunk{Delta: "y", Attributed: tag},
		payload.ToolCallStart{ToolCallID: c, ToolCallName: "f", ParentMessageID: "", Attributed: tag}, payload.ToolCallStart{ToolCallID: c, ToolCallName: "f", ParentMessageID: m, Attributed: tag}, payload.ToolCallArgs{ToolCallID: c, Attributed: tag}, payload.ToolCallEnd{ToolCallID: c, Attributed: tag},
		payload.ToolCallChunk{ToolCallID: c, ToolCallName: "f", Delta: "x", Attributed: tag}, payload.ToolCallChunk{Delta: "y", Attributed: tag},
		payload.ToolCallResult{MessageID: m, ToolCallID: c, Content: []byte(`"x"`), Role: payload.RoleTool, Attributed: tag},
		payload.ReasoningStart{MessageID: m, Attributed: tag}, payload.ReasoningEnd{MessageID: m, Attributed: tag}, payload.ReasoningMessageStart{MessageID: m, Role: payload.RoleReasoning, Attributed: tag},
		payload.ReasoningMessageContent{MessageID: m, Attributed: tag}, payload.ReasoningMessageEnd{MessageID: m, Attributed: tag}, payload.ReasoningMessageChunk{MessageID: m, Attributed: tag},
		payload.ReasoningEncryptedValue{Subtype: "message", EntityID: m, EncryptedValue: "z", Attributed: tag},
		payload.Unknown{Type: "THINKING_START"}, payload.Unknown{Type: "THINKING_END"}, payload.Unknown{Type: "THINKING_TEXT_MESSAGE_START"},
		payload.Unknown{Type: "THINKING_TEXT_MESSAGE_CONTENT", Data: []byte(`{"delta":"x"}`)}, payload.Unknown{Type: "THINKING_TEXT_MESSAGE_END"},
		payload.StepStarted{StepName: x, Attributed: tag}, payload.StepFinished{StepName: x, Attributed: tag},
		payload.SubagentStarted{SubagentRunID: s, Name: "n"}, payload.SubagentStarted{SubagentRunID: s, Name: "n", ParentSubagentRunID: "s"},
		payload.SubagentFinished{SubagentRunID: s}, payload.SubagentError{SubagentRunID: s},
		payload.ActivitySnapshot{MessageID: m, ActivityType: "T", Content: []byte(`{}`), Replace: nil, Attributed: tag}, payload.ActivityDelta{MessageID: m, ActivityType: "T", Patch: []byte(`[]`), Attributed: tag},
		payload.MessagesSnapshot{Messages: []payload.Message{text}}, payload.StateSnapshot{Snapshot: []byte(`1`), Attributed: tag}, payload.Custom{Name: "x", Attributed: tag},
		payload.SessionCleared{}, payload.MessageAdded{Message: text},
		payload.RunStarted{ThreadID: "x", RunID: rapid.StringMatching(`run[0-9]{4}`).Draw(t, "run")}, payload.RunFinished{}, payload.RunError{Message: "x"},
	}).Draw(t, "payload")
	e := payload.NewEvent(p)
	e.Thread = rapid.SampledFrom([]string{"", "", "b"}).Draw(t, "thread")
	if e.Type == tapedeck.RunFinished {
		e.Data = nil // filled in by the normalization
	}
	return e
}

// TestClosingIsAlwaysAccepted: the events of Closing close everything that is
// open in a run, so that any terminal event may follow. A verifier that was
// restored from the log gives the same events as the one that saw them arrive.
func TestClosingIsAlwaysAccepted(t *testing.T) {
	seen := map[kind]bool{}
	rapid.Check(t, func(t *rapid.T) {
		v, log := NewVerifier(), fakeLog{}
		var s tapedeck.Session
		write := func(events []tapedeck.Event) {
			events, drafts, err := tapedeck.Drafts(events, nil, noon)
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range drafts {
				log.records = append(log.records, d.Record(s.Head))
				events[i].Offset = s.Head
				s.Apply(&events[i])
				s.Head++
			}
			v.SetOffsets(events)
		}
		begin, err := v.Accept([]tapedeck.Event{{Type: tapedeck.RunStarted, Invocation: "first"}})
		if err != nil {
			t.Fatal(err)
		}
		write(begin)
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			before := fmt.Sprintf("%+v", v.Runs()) + fmt.Sprint(v.Open(tapedeck.MainThread))
			out, err := v.Accept([]tapedeck.Event{anyContent(t)})
			for _, r := range v.runs {
				for _, o := range r.open {
					seen[o.kind] = true
				}
			}
			if err == nil {
				write(out)
			} else if after := fmt.Sprintf("%+v", v.Runs()) + fmt.Sprint(v.Open(tapedeck.MainThread)); after != before {
				t.Fatalf("refused with %v, but went from %s to %s", err, before, after)
			}
		}
		restored, err := RestoreVerifier(t.Context(), log, s)
		if err != nil || !cmp.Equal(restored.Runs(), v.Runs()) {
			t.Fatalf("%v\n%s", err, cmp.Diff(v.Runs(), restored.Runs()))
		}
		for _, r := range v.Runs() {
			closing := v.Closing(r.Invocation)
			if again := restored.Closing(r.Invocation); !cmp.Equal(again, closing) {
				t.Fatal(cmp.Diff(closing, again))
			}
			terminal := rapid.SampledFrom([]payload.Payload{payload.RunFinished{ThreadID: "x", RunID: r.Invocation}, payload.RunError{Message: "x"}}).Draw(t, "terminal")
			end := payload.NewEvent(terminal)
			end.Thread, end.Invocation = r.Thread, r.Invocation
			events := append(closing, end)
			if out, err := v.Clone().Accept(events); err != nil || len(out) != len(events) {
				t.Fatalf("Accept makes %d events of %d after %s: %v", len(out), len(events), shownLog(log), err)
			}
			for i := range events {
				if err := v.Add(&events[i]); err != nil {
					t.Fatalf("%s %s after %s: %v", events[i].Type, events[i].Data, shownLog(log), err)
				}
			}
		}
		if len(v.Runs()) != 0 {
			t.Fatalf("still open: %+v", v.Runs())
		}
	})
	for k := textMessage; k < activityMessage && !testing.Short(); k++ { // a short run does not reach all kinds
		if !seen[k] {
			t.Errorf("no %s was ever open: the property says nothing of it", kinds[k].noun)
		}
	}
}

func shownLog(l fakeLog) (s string) {
	for _, r := range l.records {
		s += "\n" + string(r.Data)
	}
	return s
}

func TestRestoreVerifierReadsOnlyOpenRuns(t *testing.T) {
	run := func(id, thread string, p payload.Payload) tapedeck.Event {
		e := payload.NewEvent(p)
		e.Invocation, e.Thread = id, thread
		return e
	}
	events := []tapedeck.Event{
		payload.NewEvent(payload.SessionCreated{}),
		run("a", "", payload.RunStarted{ThreadID: "x", RunID: "a"}),
		run("b", "t", payload.RunStarted{ThreadID: "x", RunID: "b"}),
		run("a", "", payload.TextMessageEnd{MessageID: "never"}), // from a writer that did not verify
		run("a", "", payload.TextMessageStart{MessageID: "m"}),
		run("b", "t", payload.TextMessageStart{MessageID: "n"}),
		run("a", "", payload.RunError{Message: "x"}),
		run("b", "t", payload.TextMessageStart{MessageID: "later"}),
	}
	l := logOf(t, events...)
	s := tapedeck.Session{ID: "s"}
	for i, r := range l.records[:7] {
		e, _ := r.Event()
		s.Apply(&e)
		s.Head = int64(i) + 1
	}
	v, err := RestoreVerifier(t.Context(), l, s)
	if err != nil {
		t.Fatal(err)
	}
	want := []tapedeck.OpenRun{{Invocation: "b", Thread: "t", Offset: 2, Started: noon}}
	if !cmp.Equal(v.Runs(), want) || !cmp.Equal(v.Open("t"), []OpenThing{{Type: tapedeck.TextMessageStart, ID: "n"}}) {
		t.Errorf("runs %+v, open %+v", v.Runs(), v.Open("t"))
	}
	l.fail = tapedeck.Errorf(tapedeck.Unavailable, "the disk does not answer")
	if _, err := RestoreVerifier(t.Context(), l, s); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("got %v", err)
	}
	if v, err := RestoreVerifier(t.Context(), l, tapedeck.Session{}); err != nil || len(v.Runs()) != 0 {
		t.Errorf("a session without runs was read: %v", err)
	}
}
