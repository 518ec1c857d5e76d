package view

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// FuzzScan compares the fast reader with the slow one. The fast one must read
// the same or report false.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"messageId":"m","delta":"x"}`, `{"messageId":"m","delta":"a\"b\\"}`, `{"messageId":"m\n","delta":"x"}`,
		`{"messageId":"m","delta":"x","cuts":[[1,2]]}`, `{"messageId":"m","delta":7}`, `{"messageId":"m","delta":"☔\ud83d"}`,
		`{"messageId":"m","delta":"x","delta":"y"}`, `{}`, `{"messageId":"","delta":""}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want struct {
			ID    *string        `json:"messageId"`
			Delta *payload.Piece `json:"delta"`
		}
		if !json.Valid(data) || !utf8.Valid(data) || repeats(data) {
			t.Skip()
		}
		id, delta, ok := messageDelta.scan(data)
		if !ok {
			t.Skip()
		}
		if err := json.Unmarshal(data, &want); err != nil || want.ID == nil || want.Delta == nil || *want.ID != string(id) || *want.Delta != payload.Piece(delta) {
			t.Errorf("%s: read %q and %q", data, id, delta)
		}
	})
}

// repeats reports whether an object repeats the name of a member, in any case.
// It is not defined which of them counts.
func repeats(data []byte) bool {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(data, &m)
	n := 0
	for i := range data {
		if data[i] == ':' {
			n++
		}
	}
	return n != len(m)
}

func BenchmarkApply(b *testing.B) {
	for _, c := range []struct{ name, data string }{
		{"delta", `{"messageId":"msg_01J","delta":"a few words of text"}`},
		{"delta with escapes", `{"messageId":"msg_01J","delta":"a few\nwords of text"}`},
		{"delta in another order", `{"delta":"a few words of text","messageId":"msg_01J"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var conversation Conversation
			e := event("TEXT_MESSAGE_CONTENT", c.data)
			b.ReportAllocs()
			for i := range b.N {
				e.Offset = int64(i)
				conversation.Apply(&e)
			}
		})
	}
}

func event(typ, data string) tapedeck.Event {
	return tapedeck.Event{Type: typ, Channel: tapedeck.ChannelOf(typ), Data: json.RawMessage(data)}
}
