package agui_test

import (
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// Whatever an agent sends, the events fit into a log, and an error is one for users.
func FuzzStream(f *testing.F) {
	f.Add(begun + `data: {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}` + "\n\n" + ended)
	f.Add(begun + `data: {"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"n","metadata":{"tapedeck":{"chunk":true}}}` + "\n\n")
	f.Add(begun + `data: {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"user","content":null}]}` + "\n\n" + ended)
	f.Add(begun + `data: {"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}` + "\n\n" + `data: {"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x","responseSchema":{"enum":[1,null]}}]}}` + "\n\n")
	f.Add(`data: {"type":"RUN_ERROR","message":"x","usage":[{}]}` + "\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		_, events, err := run(t, runnerOf(answering(stream)), tapedeck.Invocation{ID: "inv_1", Task: "hi"})
		if err != nil && tapedeck.KindOf(err) != tapedeck.Unavailable {
			t.Errorf("the error is %v", err)
		}
		v := order.NewVerifier()
		begin := payload.NewEvent(payload.RunStarted{ThreadID: "t", RunID: "inv_1"})
		for _, e := range append([]tapedeck.Event{begin}, events...) {
			e.Invocation = "inv_1"
			if err := v.Add(&e); err != nil {
				t.Errorf("%s %s: %v", e.Type, e.Data, err)
			}
			if err := e.Check(); err != nil {
				t.Errorf("%s %s: %v", e.Type, e.Data, err)
			}
		}
	})
}
