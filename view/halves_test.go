package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Folds that are stored between the two halves of a character, and loaded again, give the
// same views as those that are not.
func TestCheckpointBetweenHalves(t *testing.T) {
	var events []tapedeck.Event
	for line := range strings.Lines(`RUN_STARTED {"threadId":"main","runId":"i"}
TEXT_MESSAGE_START {"messageId":"m"}
TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"\ud83d"}
TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"\ude80 on \ud83d\ud83d"}
TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"\ude80\ud83d"}
TEXT_MESSAGE_END {"messageId":"m"}
TOOL_CALL_START {"toolCallId":"c","toolCallName":"Write"}
TOOL_CALL_ARGS {"toolCallId":"c","delta":"{\"file_path\":\"\ud83d"}
TOOL_CALL_ARGS {"toolCallId":"c","delta":"\ude80\",\"content\":\"x\"}"}
TOOL_CALL_END {"toolCallId":"c"}
TOOL_CALL_RESULT {"messageId":"t","toolCallId":"c","content":"done"}
RUN_FINISHED {"threadId":"main","runId":"i"}`) {
		typ, data, _ := strings.Cut(strings.TrimSpace(line), " ")
		events = append(events, tapedeck.Event{Offset: int64(len(events)), Type: typ, Channel: tapedeck.ChannelOf(typ), Invocation: "i", Data: json.RawMessage(data)})
	}
	encode := func(v any) string {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	again := func(from, to any) {
		t.Helper()
		if err := json.Unmarshal([]byte(encode(from)), to); err != nil {
			t.Fatal(err)
		}
	}
	exact := func(c *view.Conversation) string {
		t.Helper()
		s := c.Snapshot()
		return encode(s.Exact())
	}
	var whole view.Conversation
	sum := view.NewSummaryFold(0)
	for at := range events {
		whole.Apply(&events[at])
		sum.Apply(&events[at])
		var c view.Conversation
		s := view.NewSummaryFold(0)
		for i := range events[:at+1] {
			c.Apply(&events[i])
			s.Apply(&events[i])
			var stored view.Conversation
			again(&c, &stored)
			c = stored
			loaded := view.NewSummaryFold(0)
			again(s, loaded)
			s = loaded
		}
		if got, want := exact(&c), exact(&whole); got != want {
			t.Errorf("after event %d: %s\nwant %s", at, got, want)
		}
		if got, want := encode(s.Summary()), encode(sum.Summary()); got != want {
			t.Errorf("summary after event %d: %s\nwant %s", at, got, want)
		}
	}
	last := whole.Snapshot()
	if got, want := last.Messages[0].Text, "🚀 on \ufffd🚀\ufffd"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
	if got, want := string(last.Calls[0].Input), `{"file_path":"🚀","content":"x"}`; got != want {
		t.Errorf("the input is %s, want %s", got, want)
	}
	total := sum.Summary()
	if m := total.LastMessage; m == nil || m.Text != "🚀 on \ufffd🚀" || len(total.FilesModified) != 1 {
		t.Errorf("the summary is %s", encode(total))
	}
}
