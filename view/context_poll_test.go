package view_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// TestPolledContext reads a context after each event of a run, each time up to the first
// event that may change. What was read is the whole context at the end of the run.
func TestPolledContext(t *testing.T) {
	run := strings.Split(`RUN_STARTED {}
message.added {"message":{"id":"u1","role":"user","content":"go"}}
TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"I "}
TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"look."}
TEXT_MESSAGE_END {"messageId":"m1"}
TOOL_CALL_START {"toolCallId":"c1","toolCallName":"Read","parentMessageId":"m1"}
TOOL_CALL_ARGS {"toolCallId":"c1","delta":"{}"}
TOOL_CALL_END {"toolCallId":"c1"}
TOOL_CALL_START {"toolCallId":"c2","toolCallName":"Read","parentMessageId":"m1"}
TOOL_CALL_ARGS {"toolCallId":"c2","delta":"{\"a\":"}
TOOL_CALL_ARGS {"toolCallId":"c2","delta":"1}"}
TOOL_CALL_END {"toolCallId":"c2"}
TOOL_CALL_RESULT {"toolCallId":"c2","messageId":"r2","content":"two"}
TOOL_CALL_RESULT {"toolCallId":"c1","messageId":"r1","content":"one"}
TOOL_CALL_START {"toolCallId":"c3","toolCallName":"Ask"}
TOOL_CALL_ARGS {"toolCallId":"c3","delta":"{}"}
TOOL_CALL_END {"toolCallId":"c3"}
TOOL_CALL_RESULT {"toolCallId":"c3","messageId":"r3","content":"three"}
TEXT_MESSAGE_START {"messageId":"m2","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"Don"}
TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"e."}
TEXT_MESSAGE_END {"messageId":"m2"}
RUN_FINISHED {}`, "\n")
	c := new(view.Conversation)
	var read, events []view.ContextEvent
	var next []int
	for n, line := range run {
		typ, data, _ := strings.Cut(line, " ")
		c.Apply(&tapedeck.Event{Offset: int64(n), Type: typ, Channel: tapedeck.ChannelChunks, Invocation: "i1", Data: json.RawMessage(data)})
		events, _ = contextOf(c)
		to := slices.IndexFunc(events, func(e view.ContextEvent) bool { return e.MayChange })
		if to < 0 {
			to = len(events)
		}
		if to < len(read) {
			t.Fatalf("after %s, event %d may change, which was read", line, to)
		}
		read, next = append(read, events[len(read):to]...), append(next, to)
	}
	if !reflect.DeepEqual(read, events) || len(events) != 10 {
		t.Errorf("read  %+v\nis %+v", read, events)
	}
	want := []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 6, 6, 6, 6, 9, 9, 9, 9, 9, 10}
	if !slices.Equal(next, want) {
		t.Errorf("one reads up to %v, want %v", next, want)
	}
}
