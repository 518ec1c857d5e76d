package agui_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// FuzzEvents appends any events. Whatever the server accepts, it can send again in an
// order that a front end accepts.
func FuzzEvents(f *testing.F) {
	var lines strings.Builder
	for _, e := range sceneEvents()[1:] {
		data := strings.TrimPrefix(string(e.Data), "{")
		lines.WriteString(`{"type":"` + e.Type + `",` + data + "\n")
	}
	f.Add([]byte(lines.String()))
	f.Add([]byte(lines.String()[:lines.Len()/2]))
	f.Add([]byte(`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":[{"type":"text","text":"a"}]},{"id":"u","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"id":"x","role":"tool","toolCallId":"c","content":"y"}]}}
{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"reasoning","content":"b"},{"id":"a","role":"activity","activityType":"x","content":{}}]}
{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a","subagentRunId":"s"}
{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"nobody","content":"a"}
{"type":"TOOL_CALL_CHUNK","toolCallId":"m","toolCallName":"f","parentMessageId":"u","delta":"a"}
{"type":"RUN_ERROR","message":"m"}`))
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		id := tapedeck.NewID("ses_")
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/agui/out/events/"+id, strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/x-ndjson")
		got := httptest.NewRecorder()
		w.Handler.ServeHTTP(got, r)
		if got.Code >= 500 {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		if got.Code != 200 {
			return
		}
		late := *w
		late.TB = t
		open := late.open("/agui/steps/connect", input(id, "x", "u", ""))
		r = httptest.NewRequestWithContext(t.Context(), "POST", "/agui/steps/stop/"+id, nil)
		w.Handler.ServeHTTP(httptest.NewRecorder(), r)
		<-open.Done
		for _, r := range []*reader{open, late.run("/agui/steps/connect", input(id, "x", "u", "")), late.run("/agui/steps/connect", `{"threadId":"`+id+`"}`)} {
			(&frontend{t: t}).receive(r.events())
		}
	})
}
