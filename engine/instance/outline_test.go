package instance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// A context that is too long to be read is reverted at its numbers. The first message
// makes its call after the next one, from which on the newest 10,000 messages are.
func TestLongContextIsReverted(t *testing.T) {
	w := newWorld(t)
	lines := strings.Split(`RUN_STARTED {"threadId":"main","runId":"i1"}
TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"I look."}
TEXT_MESSAGE_END {"messageId":"m1"}
message.added {"message":{"id":"u1","role":"user","content":"Quick."}}
TOOL_CALL_START {"toolCallId":"c1","toolCallName":"Read","parentMessageId":"m1"}
TOOL_CALL_ARGS {"toolCallId":"c1","delta":"{}"}
TOOL_CALL_END {"toolCallId":"c1"}
TOOL_CALL_RESULT {"toolCallId":"c1","messageId":"r1","content":"a file"}
RUN_FINISHED {"threadId":"main","runId":"i1"}
message.added {"message":{"id":"s1","role":"assistant","toolCalls":[{"id":"c2","type":"function","function":{"name":"Read","arguments":"{}"}}],"metadata":{"tapedeck":{"step":"tool_call"}}}}`, "\n")
	want := []string{
		`assistant_message {"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{}"}}]}`,
		`user_message {"role":"user","content":"Quick."}`, `tool_call {"id":"c1","name":"Read","arguments":"{}"}`, `tool_result {"tool_call_id":"c1","content":"a file"}`,
		`tool_call {"id":"c2","name":"Read","arguments":"{}"}`,
	}
	const more = 9_998
	var log []tapedeck.Event
	for _, line := range lines {
		typ, data, _ := strings.Cut(line, " ")
		invocation := "i1"
		if strings.Contains(data, `"s1"`) {
			invocation = ""
		}
		log = append(log, tapedeck.Event{Type: typ, Invocation: invocation, Data: json.RawMessage(data)})
	}
	for n := range more {
		log = append(log, tapedeck.Event{Type: tapedeck.MessageAdded, Data: json.RawMessage(fmt.Sprintf(`{"message":{"id":"x%d","role":"user","content":"%d"}}`, n, n))})
		want = append(want, fmt.Sprintf(`user_message {"role":"user","content":"%d"}`, n))
	}
	for ; len(log) > 0; log = log[min(500, len(log)):] {
		if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: log[:min(500, len(log))]}); err != nil {
			t.Fatal(err)
		}
	}
	i := view.Ref{Session: "ses", ID: view.InstanceID("ses", "")}
	_, err := w.GetEvents(t.Context(), i, 0)
	refuses(t, err, tapedeck.TooLarge, "more than 10000 messages")
	for _, last := range []int{len(want) - 2, 4, 3, 1, -1} {
		n, done, err := w.DeleteEventsAfter(t.Context(), i, last)
		if err != nil || n != len(want)-last-1 {
			t.Errorf("after %d: %d of %d, %v", last, n, len(want)-last-1, err)
		}
		w.shows(i, want[:last+1]...)
		if _, err := w.engine.Undo(t.Context(), api.Undo{Session: "ses", Marker: done.Marker}); err != nil {
			t.Fatal(err)
		}
	}
}
