package tapedeck

import (
	"encoding/json"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"testing"
)

func benchDelta() Event {
	return Event{
		Offset: 123456, Type: TextMessageContent, Channel: ChannelChunks, Time: noon, Invocation: "inv_01JABCDEFGHJKMNPQRSTVWXYZ0",
		Instance: "ins_01JABCDEFGHJKMNPQRSTVWXYZ0", Turn: 3, Actor: "agent:coder",
		Data: []byte(`{"messageId":"msg_01JABCDEFGHJKMNPQRSTVWXYZ0","delta":" the quick brown fox jumps over the lazy dog"}`),
	}
}

func BenchmarkEventCheck(b *testing.B) {
	e := benchDelta()
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDrafts(b *testing.B) {
	a := Append{Events: []Event{benchDelta()}}
	b.ReportAllocs()
	for b.Loop() {
		d, err := Drafts(a.Events, a.Chunks, noon)
		if err != nil {
			b.Fatal(err)
		}
		d[0].Record(123456)
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	e := benchDelta()
	r := e.draft().Record(e.Offset)
	b.SetBytes(int64(len(r.Data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Event(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeOtherForm(b *testing.B) {
	in := []byte(`{"type":"TEXT_MESSAGE_CONTENT","invocation":"inv_1","data":{"messageId":"msg_1","delta":" the quick brown fox"}}`)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		var e Event
		if err := json.Unmarshal(in, &e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChannelOf(b *testing.B) {
	for _, typ := range []string{TextMessageContent, RunFinished, SessionRenamed, "my.own"} {
		b.Run(typ, func(b *testing.B) {
			for b.Loop() {
				ChannelOf(typ)
			}
		})
	}
}

func benchVerifier(b *testing.B) *order.Verifier {
	v := order.NewVerifier()
	run := benchDelta().Invocation
	for _, p := range []payload.Payload{
		payload.RunStarted{ThreadID: MainThread, RunID: run}, payload.StepStarted{StepName: "a"},
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
	v, in := benchVerifier(b), []Event{benchDelta()}
	b.ReportAllocs()
	for b.Loop() {
		next := v.Clone()
		if _, err := next.Accept(in); err != nil {
			b.Fatal(err)
		}
		v = next
	}
}

// A call with its result, in a run that has seen many of them.
func BenchmarkVerifierToolCall(b *testing.B) {
	v := benchVerifier(b)
	var events []Event
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

func BenchmarkNewEvent(b *testing.B) {
	p := payload.TextMessageContent{MessageID: "msg_01JABCDEFGHJKMNPQRSTVWXYZ0", Delta: " the quick brown fox jumps over the lazy dog"}
	b.ReportAllocs()
	for b.Loop() {
		payload.NewEvent(p)
	}
}

func BenchmarkDecodeData(b *testing.B) {
	e := benchDelta()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := payload.DecodeAs[payload.TextMessageContent](e); err != nil {
			b.Fatal(err)
		}
	}
}
