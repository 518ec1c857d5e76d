package agui_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/decktest"
	"github.com/tapedeck/tapedeck/view"
)

// said returns a message of a client.
func said(id, role, words string) map[string]any {
	return map[string]any{"id": id, "role": role, "content": words}
}

// has returns the ids of the messages of the thread.
func (w *world) has() string {
	w.Helper()
	now, err := w.Session("s").Snapshot(w.Context(), view.Query{})
	if err != nil {
		w.Fatal(err)
	}
	var ids []string
	for i := range now.Messages {
		ids = append(ids, now.Messages[i].ID)
	}
	return strings.Join(ids, " ")
}

// A client that has not seen that its thread was reverted does not bring the reverted
// messages back: its message is refused, and nothing is stored. Each run calls its message m,
// so the client knows the second one by another name.
func TestStaleClient(t *testing.T) {
	const thought = "REASONING_MESSAGE_START {\"messageId\":\"thought\",\"role\":\"reasoning\"}\nREASONING_MESSAGE_CONTENT {\"messageId\":\"thought\",\"delta\":\"Hm.\"}\nREASONING_MESSAGE_END {\"messageId\":\"thought\"}\n"
	u1, u2, u3 := said("u1", "user", decktest.Say("m", "one")), said("u2", "user", thought+decktest.Say("m", "two")), said("u3", "user", "three")
	rewind := func(run string) func(w *world) {
		return func(w *world) {
			if _, err := w.Session("s").Rewind(t.Context(), api.Rewind{BeforeInvocation: run}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		back       func(w *world)
		left, want string
	}{
		"another answer": {func(w *world) {
			w.run("/agui/steps", inputOf("s", "r3", []map[string]any{u1, said("m", "assistant", "one"), u2}))
		}, "u1 m u2 thought m", "m@"},
		"a rewind": {rewind("r2"), "u1 m", "u2"},
		"a clear":  {rewind("r1"), "", "u1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			f := &frontend{t: t, messages: []map[string]any{u1}}
			f.receive(w.run("/agui/steps", inputOf("s", "r1", f.messages)).events())
			f.messages = append(f.messages, u2)
			f.receive(w.run("/agui/steps", inputOf("s", "r2", f.messages)).events())
			c.back(w)
			if got := w.has(); got != c.left {
				t.Fatal(got)
			}
			stale := append(slices.Clone(f.messages), u3)
			got := w.run("/agui/steps", inputOf("s", "r4", stale))
			if got.Status != http.StatusConflict || !strings.Contains(got.Text(), `has reverted the message \"`+c.want) || !strings.Contains(got.Text(), "connect to the thread") {
				t.Errorf("%d %s", got.Status, got.Text())
			}
			if got := w.has(); got != c.left {
				t.Errorf("the thread had %q and has %q", c.left, got)
			}
			f.receive(w.run("/agui/steps/connect", inputOf("s", "x", nil)).events())
			f.messages = append(f.messages, said("thought", "reasoning", "Hm.")) // a client keeps it
			if got := w.run("/agui/steps", inputOf("s", "r5", append(f.messages, u3))); got.Status >= http.StatusBadRequest {
				t.Errorf("after it has connected: %d %s", got.Status, got.Text())
			}
			if got := w.has(); strings.Count(got, "thought") != strings.Count(c.left, "thought") {
				t.Errorf("the thread has %q", got)
			}
		})
	}
}

// What a request wants may have been in the thread before: a message of a user, and the answer
// of a tool. A client keeps what an earlier attempt of a step said, and that is left out.
func TestSentAgainAfterARewind(t *testing.T) {
	const lost = "lost"
	u1 := said("u1", "user", decktest.Say(lost, "lost")+"\nattempt.superseded {}\nTOOL_CALL_START {\"toolCallId\":\"k\",\"toolCallName\":\"pick\",\"parentMessageId\":\"m\"}\nTOOL_CALL_END {\"toolCallId\":\"k\"}")
	m := map[string]any{"id": "m", "role": "assistant", "toolCalls": []any{map[string]any{"id": "k", "type": "function", "function": map[string]any{"name": "pick", "arguments": ""}}}}
	answer := map[string]any{"id": "t1", "role": "tool", "toolCallId": "k", "content": "red"}
	for name, last := range map[string]map[string]any{"a message": said("u2", "user", "two"), "the answer of a tool": answer} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run("/agui/steps", inputOf("s", "r1", []map[string]any{u1}))
			before := w.has()
			for n := range 2 {
				got := w.run("/agui/steps", inputOf("s", fmt.Sprint("again", n), []map[string]any{u1, m, said(lost, "assistant", "lost"), last}))
				if got.Status >= http.StatusBadRequest {
					t.Fatalf("%d %s", got.Status, got.Text())
				}
				if got := w.has(); !strings.HasPrefix(got, before) || strings.Contains(got, lost) {
					t.Errorf("the thread had %q and has %q", before, got)
				}
				if _, err := w.Session("s").Rewind(t.Context(), api.Rewind{BeforeInvocation: fmt.Sprint("again", n)}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
