package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// BenchmarkDelta measures a token from the runner's struct to the data that is
// appended, with as many deltas in one event as join while a commit is under way.
func BenchmarkDelta(b *testing.B) {
	for _, joined := range []int{1, 16} {
		b.Run(fmt.Sprint("joined=", joined), func(b *testing.B) {
			q, at := newQueue(), time.UnixMilli(1767616496789)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				ev := payload.NewEvent(payload.TextMessageContent{MessageID: "msg_01JABCDEFGHJKMNPQRSTVWXYZ0", Delta: " the quick \"brown\" fox"})
				ev.Time, ev.Invocation = at, "inv_01JABCDEFGHJKMNPQRSTVWXYZ0"
				q.push(ev)
				if n%joined == 0 {
					q.drain()
				}
			}
		})
	}
}

// A text counts only if encoding/json reads it, and then with as many bytes.
func FuzzDecodedLen(f *testing.F) {
	for _, s := range []string{
		"", "a", "é", `\n\"\\\/\b\f\r\t`, `\u0041`, `\u00e9`, `\ud834\udd1e`, `\ud834`, `\udd1e`, `\ud834\u0041`, `\ud834\ud834\udd1e`, `\ufffd`, "\ufffd",
		`\u12`, `\x41`, `\`, `\u+123`, `\u-001`, "\n", `"`, "\x7f", "\xff", `\u0000`, `\U0041`, `\uD83D\uDE00`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := decodedLen([]byte(s))
		var text string
		valid := utf8.ValidString(s) && json.Unmarshal([]byte(`"`+s+`"`), &text) == nil
		switch {
		case !utf8.ValidString(s):
		case ok && (!valid || n != len(text)):
			t.Errorf("%q has %d bytes, encoding/json reads %q", s, n, text)
		case !ok && valid && !strings.ContainsRune(text, utf8.RuneError):
			t.Errorf("%q is refused", s)
		}
	})
}

// Joined deltas have the same text as the single ones.
func TestJoinKeepsTexts(t *testing.T) {
	texts := []string{"a", "é", "\n\"\\", "𝄞", "\x00\x7f", "\ufffd", "</script>", "\u2028", strings.Repeat("x", 5000)}
	q, at, want := newQueue(), time.UnixMilli(0), payload.TextMessageContent{MessageID: `m"1`}
	for i, text := range texts {
		ev := payload.NewEvent(payload.TextMessageContent{MessageID: want.MessageID, Delta: payload.Piece(text)})
		if i%2 == 1 { // as other programs encode it
			b, err := json.Marshal(map[string]string{"messageId": want.MessageID, "delta": text})
			if err != nil {
				t.Fatal(err)
			}
			ev.Data = b
		}
		ev.Time = at.Add(time.Duration(i) * time.Millisecond)
		q.push(ev)
		want.Delta += payload.Piece(text)
		want.Cuts = append(want.Cuts, payload.Cut{int64(len(text)), int64(i)})
	}
	events := q.drain()
	if len(events) != 1 {
		t.Fatalf("there are %d events", len(events))
	}
	got, err := payload.DecodeAs[payload.TextMessageContent](events[0])
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if err := payload.CheckData(&events[0]); err != nil {
		t.Error(err)
	}
}

// A delta that encoding/json cannot read is not joined, so that it is refused
// alone.
func TestJoinLeavesOutBadJSON(t *testing.T) {
	good := content(`{"messageId":"m","delta":"a"}`)
	for _, bad := range []string{
		`{"messageId":"m","delta":"\x"}`, `{"messageId":"\x","delta":"a"}`, "{\"messageId\":\"m\",\"delta\":\"\n\"}", `{"messageId":"m","delta":"a"}x`,
		`{"messageId":"m","delta":"a",}`, `{"messageId":"m","messageId":"m"}`, `{"messageId":"m","delta":"a","delta":"b"}`, `{"messageId":"","delta":"a"}`,
		`{"messageId":"m","delta":""}`, `["messageId","m"]`,
	} {
		if got, want := deltas(good, content(bad), good), fmt.Sprintf("%s %s %s", good.Data, bad, good.Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, ok := deltaOf(&tapedeck.Event{Type: tapedeck.TextMessageEnd, Data: good.Data}); ok {
		t.Error("an end is taken for a delta")
	}
}
