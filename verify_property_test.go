package tapedeck

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyContent draws an event that may or may not come now: with few ids, so that
// it often does.
func anyContent(t *rapid.T) Event {
	message, call, step := rapid.SampledFrom([]string{"m", "n"}), rapid.SampledFrom([]string{"c", "d"}), rapid.SampledFrom([]string{"x", "y"})
	sub := rapid.SampledFrom([]string{"s", "t", "u", "v"})
	tag := Attributed{SubagentRunID: rapid.SampledFrom([]string{"", "", "", "s", "t"}).Draw(t, "tag")}
	m, c, x, s := message.Draw(t, "message"), call.Draw(t, "call"), step.Draw(t, "step"), sub.Draw(t, "subagent")
	text := NewMessage(m, RoleAssistant, "x")
	text.SubagentRunID = tag.SubagentRunID
	p := rapid.SampledFrom([]Payload{
		TextMessageStartData{MessageID: m, Attributed: tag}, TextMessageContentData{MessageID: m, Delta: "x", Attributed: tag}, TextMessageEndData{m, tag},
		TextMessageChunkData{MessageID: m, Delta: "x", Attributed: tag}, TextMessageChunkData{Delta: "y", Attributed: tag},
		ToolCallStartData{c, "f", "", tag}, ToolCallStartData{c, "f", m, tag}, ToolCallArgsData{ToolCallID: c, Attributed: tag}, ToolCallEndData{c, tag},
		ToolCallChunkData{ToolCallID: c, ToolCallName: "f", Delta: "x", Attributed: tag}, ToolCallChunkData{Delta: "y", Attributed: tag},
		ToolCallResultData{m, c, []byte(`"x"`), RoleTool, tag},
		ReasoningStartData{m, tag}, ReasoningEndData{m, tag}, ReasoningMessageStartData{m, RoleReasoning, tag},
		ReasoningMessageContentData{MessageID: m, Attributed: tag}, ReasoningMessageEndData{m, tag}, ReasoningMessageChunkData{MessageID: m, Attributed: tag},
		ReasoningEncryptedValueData{"message", m, "z", tag},
		UnknownData{Type: "THINKING_START"}, UnknownData{Type: "THINKING_END"}, UnknownData{Type: "THINKING_TEXT_MESSAGE_START"},
		UnknownData{Type: "THINKING_TEXT_MESSAGE_CONTENT", Data: []byte(`{"delta":"x"}`)}, UnknownData{Type: "THINKING_TEXT_MESSAGE_END"},
		StepStartedData{x, tag}, StepFinishedData{x, tag},
		SubagentStartedData{SubagentRunID: s, Name: "n"}, SubagentStartedData{SubagentRunID: s, Name: "n", ParentSubagentRunID: "s"},
		SubagentFinishedData{SubagentRunID: s}, SubagentErrorData{SubagentRunID: s},
		ActivitySnapshotData{m, "T", []byte(`{}`), nil, tag}, ActivityDeltaData{m, "T", []byte(`[]`), tag},
		MessagesSnapshotData{Messages: []Message{text}}, StateSnapshotData{Snapshot: []byte(`1`), Attributed: tag}, CustomData{Name: "x", Attributed: tag},
		SessionClearedData{}, MessageAddedData{Message: text},
		RunStartedData{ThreadID: "x", RunID: rapid.StringMatching(`run[0-9]{4}`).Draw(t, "run")}, RunFinishedData{}, RunErrorData{Message: "x"},
	}).Draw(t, "payload")
	e := NewEvent(p)
	e.Thread = rapid.SampledFrom([]string{"", "", "b"}).Draw(t, "thread")
	if e.Type == RunFinished {
		e.Data = nil // to be filled in
	}
	return e
}

// Whatever a run has open, Closing closes it, so that any terminal event may
// follow; and a verifier made from the log knows as much as the one that saw the
// events come.
func TestClosingIsAlwaysAccepted(t *testing.T) {
	seen := map[kind]bool{}
	rapid.Check(t, func(t *rapid.T) {
		v, log := NewVerifier(), fakeLog{}
		var s Session
		write := func(events []Event) {
			drafts, err := Drafts(events, nil, noon)
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range drafts {
				log.records = append(log.records, d.Record(s.Head))
				events[i].Offset = s.Head
				s.Apply(&events[i])
				s.Head++
			}
			v.Settle(events)
		}
		begin, err := v.Accept([]Event{{Type: RunStarted, Invocation: "first"}})
		if err != nil {
			t.Fatal(err)
		}
		write(begin)
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			before := fmt.Sprintf("%+v", v.Runs()) + fmt.Sprint(v.Open(MainThread))
			out, err := v.Accept([]Event{anyContent(t)})
			for _, r := range v.runs {
				for _, o := range r.open {
					seen[o.kind] = true
				}
			}
			if err == nil {
				write(out)
			} else if after := fmt.Sprintf("%+v", v.Runs()) + fmt.Sprint(v.Open(MainThread)); after != before {
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
			terminal := rapid.SampledFrom([]Payload{RunFinishedData{ThreadID: "x", RunID: r.Invocation}, RunErrorData{Message: "x"}}).Draw(t, "terminal")
			end := NewEvent(terminal)
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
	for k := textMessage; k < activityMessage && !testing.Short(); k++ { // a short run is too short to see everything
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
	run := func(id, thread string, p Payload) Event {
		e := NewEvent(p)
		e.Invocation, e.Thread = id, thread
		return e
	}
	events := []Event{
		NewEvent(SessionCreatedData{}),
		run("a", "", RunStartedData{ThreadID: "x", RunID: "a"}),
		run("b", "t", RunStartedData{ThreadID: "x", RunID: "b"}),
		run("a", "", TextMessageEndData{MessageID: "never"}), // written by somebody who did not verify
		run("a", "", TextMessageStartData{MessageID: "m"}),
		run("b", "t", TextMessageStartData{MessageID: "n"}),
		run("a", "", RunErrorData{Message: "x"}),
		run("b", "t", TextMessageStartData{MessageID: "later"}),
	}
	l := logOf(t, events...)
	s := Session{ID: "s"}
	for i, r := range l.records[:7] {
		e, _ := r.Event()
		s.Apply(&e)
		s.Head = int64(i) + 1
	}
	v, err := RestoreVerifier(t.Context(), l, s)
	if err != nil {
		t.Fatal(err)
	}
	want := []OpenRun{{Invocation: "b", Thread: "t", Offset: 2, Started: noon}}
	if !cmp.Equal(v.Runs(), want) || !cmp.Equal(v.Open("t"), []OpenThing{{Type: TextMessageStart, ID: "n"}}) {
		t.Errorf("runs %+v, open %+v", v.Runs(), v.Open("t"))
	}
	l.fail = Errorf(Unavailable, "the disk is gone")
	if _, err := RestoreVerifier(t.Context(), l, s); KindOf(err) != Unavailable {
		t.Errorf("got %v", err)
	}
	if v, err := RestoreVerifier(t.Context(), l, Session{}); err != nil || len(v.Runs()) != 0 {
		t.Errorf("a session without runs was read: %v", err)
	}
}
