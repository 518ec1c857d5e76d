package a2a_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// A request of JSON-RPC without an id is carried out, and gets no answer.
func TestRequestWithoutID(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		for i, method := range []string{"SendMessage", "SendStreamingMessage"} {
			params := message(fmt.Sprint("m", i), "say Hello", "")
			a := w.post("/a2a/bot", fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params), "A2A-Version", "1.0")
			if a.Status != 204 || a.Body != "" {
				t.Errorf("%s: %d %q", method, a.Status, a.Body)
			}
			time.Sleep(time.Second)
			is(t, "the tasks", len(w.call("ListTasks", `{"contextId":"c"}`).tasks()), i+1)
		}
		for _, body := range []string{
			`{"jsonrpc":"2.0","method":"SubscribeToTask","params":{"id":"c~none"}}`, `{"jsonrpc":"2.0","method":"Steal"}`,
			`{"jsonrpc":"2.0","method":"GetTask","params":{"id":"c~none"}}`,
		} {
			if a := w.post("/a2a/bot", body, "A2A-Version", "1.0"); a.Status != 204 || a.Body != "" {
				t.Errorf("%s: %d %q", body, a.Status, a.Body)
			}
		}
		// What is no request at all gets an error, because nobody knows whether it had an id.
		w.post("/a2a/bot", `{"jsonrpc":"1.0","method":"GetTask"}`, "A2A-Version", "1.0").fails(-32600, "must be")
	})
}
