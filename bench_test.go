package tapedeck

import (
	"encoding/json"
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
		_, d, err := Drafts(a.Events, a.Chunks, noon)
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
