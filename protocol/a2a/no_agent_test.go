package a2a_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// The path of an agent that does not exist names the agent, and the error has the form of
// the request.
func TestAnAgentThatDoesNotExist(t *testing.T) {
	inBubble(t, a2a.Options{}, func(w *world) {
		const stream, get = `{"jsonrpc":"2.0","id":7,"method":"message/stream","params":{}}`, `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{}}`
		for _, tt := range []struct {
			method, path, body, accept string
			status                     int
			want                       string
		}{
			{"POST", "/a2a/kagent/nobody", stream, "", 200, `data: {"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"there is no agent \"nobody\"`},
			{"POST", "/a2a/kagent/nobody", stream, "application/json", 404, `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"there is no agent \"nobody\"`},
			{"POST", "/api/a2a/kagent/nobody", get, "", 404, `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"there is no agent \"nobody\"`},
			{"POST", "/a2a/nobody", get, "", 404, `"id":7,"error":{"code":-32000,"message":"there is no agent \"nobody\"`},
			{"POST", "/a2a/nobody/message:send", `{}`, "", 404, `{"error":{"code":404,"status":"NOT_FOUND","message":"there is no agent \"nobody\"`},
			{"POST", "/a2a/ns/nobody/message:send", `{}`, "", 404, `{"error":{"code":404,"status":"NOT_FOUND","message":"there is no agent \"nobody\"`},
			{"GET", "/a2a/nobody/tasks/x", "", "", 404, `"message":"there is no agent \"nobody\"`},
			{"GET", "/a2a/kagent/nobody", "", "", 404, `"kind":"not_found","message":"there is no agent \"nobody\"`},
			{"GET", "/a2a/nobody/.well-known/agent-card.json", "", "", 404, `"kind":"not_found","message":"there is no agent \"nobody\"`},
			{"GET", "/a2a/.well-known/agent-card.json", "", "", 404, "the card of an agent is below the URL"},
		} {
			var headers []string
			if tt.accept != "" {
				headers = []string{"Accept", tt.accept}
			}
			if a := w.do(tt.method, tt.path, tt.body, headers...); a.Status != tt.status || !strings.Contains(a.Body, tt.want) {
				t.Errorf("%s %s %s: got %d %s", tt.method, tt.path, tt.body, a.Status, a.Body)
			}
		}
		if _, err := w.hub.Head(w.Context(), "c"); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("a session was made: %v", err)
		}
		if a := w.do(http.MethodPost, "/a2a/nobody", `{"jsonrpc":"2.0","method":"tasks/get"}`); a.Status != http.StatusNoContent {
			t.Errorf("a notification: %d %s", a.Status, a.Body)
		}
	})
}
