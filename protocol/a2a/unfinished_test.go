package a2a_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// record appends events of an external run in a thread, one a line: the type and the data.
func (w *world) record(thread, lines string) {
	w.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		typ, data, _ := strings.Cut(strings.TrimSpace(line), " ")
		e := tapedeck.Event{Type: typ, Thread: thread, Invocation: "r", Data: json.RawMessage(data)}
		if _, err := w.engine.Append(w.Context(), tapedeck.Append{Session: "c", Events: []tapedeck.Event{e}}); err != nil {
			w.Fatal(err)
		}
	}
}

const unfinished = `message.added {"message":{"id":"u","role":"user","content":"Go"}}
	RUN_STARTED {"threadId":"t","runId":"r"}
	TEXT_MESSAGE_START {"messageId":"m"}
	TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"one "}
	TEXT_MESSAGE_END {"messageId":"m"}
	TEXT_MESSAGE_START {"messageId":"m"}
	TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"two"}`

// A run of an external program that fails in the middle of a message has it in the history,
// with all of its text.
func TestFailedRunHasItsLastMessage(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		w.create()
		w.record("main", unfinished+"\nRUN_ERROR {\"message\":\"it broke\"}")
		if got := w.call("GetTask", get("c~r")).task(); got.words() != "user: Go | agent: one two | agent: it broke" || got.Status.State != "TASK_STATE_FAILED" {
			t.Errorf("got %s %s", got.Status.State, got.words())
		}
	})
}

// A session that goes back into the middle of a message leaves what is left of it in the
// history, in whatever thread the run is.
func TestRewindIntoAMessage(t *testing.T) {
	for _, thread := range []string{"main", "side"} {
		inBubble(t, a2a.Options{}, func(w *world) {
			w.create()
			w.record(thread, unfinished+"\nTEXT_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\" three\"}")
			if _, err := w.engine.Rewind(w.Context(), api.Rewind{Session: "c", Thread: thread, ToOffset: new(int64(8))}); err != nil {
				t.Fatal(err)
			}
			if got := w.call("GetTask", get("c~r")).task(); got.words() != "user: Go | agent: one two" || got.Status.State != "TASK_STATE_CANCELED" {
				t.Errorf("%s: got %s %s", thread, got.Status.State, got.words())
			}
		})
	}
}
