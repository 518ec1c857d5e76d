package order

import (
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

func benchDelta() tapedeck.Event {
	return tapedeck.Event{
		Offset: 123456, Type: tapedeck.TextMessageContent, Channel: tapedeck.ChannelChunks, Time: time.Unix(1767616496, 789e6), Invocation: "inv_01JABCDEFGHJKMNPQRSTVWXYZ0",
		Instance: "ins_01JABCDEFGHJKMNPQRSTVWXYZ0", Turn: 3, Actor: "agent:coder",
		Data: []byte(`{"messageId":"msg_01JABCDEFGHJKMNPQRSTVWXYZ0","delta":" the quick brown fox jumps over the lazy dog"}`),
	}
}

func benchVerifier(b *testing.B) *Verifier {
	v := NewVerifier()
	run := benchDelta().Invocation
	for _, p := range []payload.Payload{
		payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: run}, payload.StepStarted{StepName: "a"},
		payload.TextMessageStart{MessageID: "msg_01JABCDEFGHJKMNPQRSTVWXYZ0"}, payload.ToolCallStart{ToolCallID: "call_1", ToolCallName: "Read"},
	} {
		e := payload.NewEvent(p)
		e.Invocation = run
		if err := v.Add(&e); err != nil {
			b.Fatal(err)
		}
	}
	return v
}

func BenchmarkVerifierDelta(b *testing.B) {
	v, e := benchVerifier(b), benchDelta()
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Add(&e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifierAcceptDelta(b *testing.B) {
	v, in := benchVerifier(b), []tapedeck.Event{benchDelta()}
	b.ReportAllocs()
	for b.Loop() {
		next := v.Clone()
		if _, err := next.Accept(in); err != nil {
			b.Fatal(err)
		}
		v = next
	}
}

// BenchmarkVerifierToolCall adds a call with its result to a run that has had
// many.
func BenchmarkVerifierToolCall(b *testing.B) {
	v := benchVerifier(b)
	var events []tapedeck.Event
	for _, p := range []payload.Payload{
		payload.ToolCallStart{ToolCallID: "call_2", ToolCallName: "Read"}, payload.ToolCallArgs{ToolCallID: "call_2", Delta: `{"path":"a"}`},
		payload.ToolCallEnd{ToolCallID: "call_2"}, payload.ToolCallResult{MessageID: "m2", ToolCallID: "call_2", Content: []byte(`"ok"`)},
	} {
		e := payload.NewEvent(p)
		e.Invocation = benchDelta().Invocation
		events = append(events, e)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range events {
			if err := v.Add(&events[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
}
