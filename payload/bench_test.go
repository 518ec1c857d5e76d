package payload

import (
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

func benchDelta() tapedeck.Event {
	return tapedeck.Event{
		Offset: 123456, Type: tapedeck.TextMessageContent, Channel: tapedeck.ChannelChunks, Time: time.Unix(1767616496, 789e6), Invocation: "inv_01JABCDEFGHJKMNPQRSTVWXYZ0",
		Instance: "ins_01JABCDEFGHJKMNPQRSTVWXYZ0", Turn: 3, Actor: "agent:coder",
		Data: []byte(`{"messageId":"msg_01JABCDEFGHJKMNPQRSTVWXYZ0","delta":" the quick brown fox jumps over the lazy dog"}`),
	}
}

func BenchmarkNewEvent(b *testing.B) {
	p := TextMessageContent{MessageID: "msg_01JABCDEFGHJKMNPQRSTVWXYZ0", Delta: " the quick brown fox jumps over the lazy dog"}
	b.ReportAllocs()
	for b.Loop() {
		NewEvent(p)
	}
}

func BenchmarkDecodeData(b *testing.B) {
	e := benchDelta()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeAs[TextMessageContent](e); err != nil {
			b.Fatal(err)
		}
	}
}
