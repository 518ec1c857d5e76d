package rest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

// sendJSON sends a request with a JSON body and decodes the answer, which must be a
// success.
func sendJSON(t *testing.T, handler http.Handler, method, path, body string, into any) {
	t.Helper()
	r := httptest.NewRequest(method, "/api/v1"+path, strings.NewReader(body))
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code >= 300 || into != nil && json.Unmarshal(w.Body.Bytes(), into) != nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

type list struct {
	Sessions []struct {
		ID      string
		Labels  map[string]string
		Summary map[string]any
	}
}

func TestListByLabelsWithSummaries(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	sendJSON(t, handler, "POST", "/sessions", `{"id":"a","projectId":"p1","taskId":"t1"}`, nil)
	sendJSON(t, handler, "POST", "/sessions", `{"id":"b","projectId":"p1","labels":{"x":"y:z"}}`, nil)
	sendJSON(t, handler, "POST", "/sessions", `{"id":"s"}`, nil)
	g.append(t, "s", do("message.added", `{"message":{"id":"u","role":"user","content":"Hi"}}`), runEvent(tapedeck.RunStarted, "i"), do("TEXT_MESSAGE_START", `{"messageId":"m"}`),
		do("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"a"}`), do("TEXT_MESSAGE_END", `{"messageId":"m"}`),
		runEvent(tapedeck.RunFinished, "i"))
	for query, want := range map[string]string{
		"": "s b a", "?projectId=p1": "b a", "?projectId=p1&taskId=t1": "a", "?label=x:y:z": "b", "?label=x:q": "", "?without_label=x": "s a", "?without_label=x&without_label=taskId": "s", "?without_label=none": "s b a", "?taskId=p1": "", "?projectId=p1&limit=1": "b",
	} {
		var l list
		sendJSON(t, handler, "GET", "/sessions"+query, "", &l)
		var ids []string
		for _, s := range l.Sessions {
			ids = append(ids, s.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	var l list
	sendJSON(t, handler, "GET", "/sessions?summary=true", "", &l)
	s := l.Sessions[0].Summary
	for _, name := range []string{"started_at", "updated_at", "axis", "recording_ms", "duration_ms", "turns_count", "tokens_used", "tool_calls", "tools_failed", "last_message", "files_modified", "lines_added", "lines_removed", "final_status"} {
		if _, ok := s[name]; !ok {
			t.Errorf("there is no %s in %v", name, s)
		}
	}
	if empty := l.Sessions[1].Summary; empty["recording_ms"] != 0.0 || empty["axis"] != "events" || empty["started_at"] != nil {
		t.Errorf("a session without a conversation has %v", empty)
	}
	if s["turns_count"] != 1.0 || s["final_status"] != "complete" {
		t.Errorf("got %v", s)
	}
}

// TestSummariesAreNotKeptTooLong: the summary of a row is that of its session now, also
// after new events, and after the session was deleted and created again.
func TestSummariesAreNotKeptTooLong(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	turns := func() any {
		var l list
		sendJSON(t, handler, "GET", "/sessions?summary=true", "", &l)
		return l.Sessions[0].Summary["turns_count"]
	}
	begin := func(id string) {
		g.append(t, "s", tapedeck.Event{Type: "message.added", Invocation: id, Data: json.RawMessage(`{"message":{"id":"` + id + `","role":"user","content":"Hi"}}`)},
			runEvent(tapedeck.RunStarted, id), runEvent(tapedeck.RunFinished, id))
	}
	sendJSON(t, handler, "POST", "/sessions", `{"id":"s"}`, nil)
	begin("i")
	if a, b := turns(), turns(); a != 1.0 || b != 1.0 {
		t.Errorf("%v and %v turns after one", a, b)
	}
	begin("j")
	if got := turns(); got != 2.0 {
		t.Errorf("%v turns after two", got)
	}
	sendJSON(t, handler, "DELETE", "/sessions/s", "", nil)
	sendJSON(t, handler, "POST", "/sessions", `{"id":"s"}`, nil)
	for range 6 { // as many as the deleted session had
		g.append(t, "s", tapedeck.Event{Type: "acme.x", Data: json.RawMessage(`{}`)})
	}
	if got := turns(); got != 0.0 {
		t.Errorf("%v turns after none", got)
	}
}

// TestSortedList: the list has the order that the request names, and pages of it.
func TestSortedList(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	for _, s := range []string{`{"id":"b","title":"Beta"}`, `{"id":"c","title":"alpha"}`, `{"id":"a"}`} {
		sendJSON(t, handler, "POST", "/sessions", s, nil)
	}
	g.append(t, "c", runEvent(tapedeck.RunStarted, "i"))
	for query, want := range map[string]string{
		"sort=title": "a c b", "sort=title&order=desc": "b c a", "sort=activity": "c a b", "sort=tokens": "a c b", "sort=created": "a c b", "order=asc": "b c a", "": "a c b",
	} {
		var got []string
		for next := ""; ; {
			var page struct {
				Sessions []struct{ ID string }
				Next     string
			}
			sendJSON(t, handler, "GET", "/sessions?limit=1&"+query+"&cursor="+next, "", &page)
			for _, s := range page.Sessions {
				got = append(got, s.ID)
			}
			if next = page.Next; next == "" {
				break
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// do is an event of invocation i.
func do(typ, data string) tapedeck.Event {
	return tapedeck.Event{Type: typ, Invocation: "i", Data: json.RawMessage(data)}
}

// TestFromByBothNames: from and fromOffset have the same meaning.
func TestFromByBothNames(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 5)
	for _, path := range []string{"/sessions/s/events?limit=9&", "/sessions/s/events?"} {
		var a, b json.RawMessage
		sendJSON(t, handler, "GET", path+"from=3", "", &a)
		sendJSON(t, handler, "GET", path+"fromOffset=3", "", &b)
		if string(a) != string(b) || strings.Contains(string(a), `"offset":2`) {
			t.Errorf("%s: %s, %s", path, a, b)
		}
	}
}

// TestChannelsAreAccepted: events in the schemas of the six channels are appended, and
// continue the log.
func TestChannelsAreAccepted(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	for _, body := range []string{
		`{"channel":"agentState","agentId":"a1","sessionId":"s","status":"running"}`,
		`[{"channel":"chunks","id":"c1","agentId":"a1","text":"I look.","turn":1,"timestamp":1705847000000},{"channel":"toolCalls","id":"t1","agentId":"a1","tool":"Read","input":{},"status":"running"}]`,
		`{"channel":"toolCalls","id":"t1","agentId":"a1","output":"text","status":"complete"}`,
		`{"channel":"agentState","agentId":"a1","status":"completed"}`,
	} {
		sendJSON(t, handler, "POST", "/sessions/s/events", body, nil)
	}
	var s struct {
		Status string
	}
	sendJSON(t, handler, "GET", "/sessions/s", "", &s)
	var p struct {
		Events []struct{ Type, Channel string }
	}
	sendJSON(t, handler, "GET", "/sessions/s/events", "", &p)
	var types []string
	for _, e := range p.Events {
		types = append(types, e.Type)
	}
	const want = "session.created RUN_STARTED agent.state TEXT_MESSAGE_CHUNK " + // as the engine of these tests leaves them
		"TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT agent.state RUN_FINISHED"
	if got := strings.Join(types, " "); got != want || s.Status != "complete" {
		t.Errorf("%s\n%s\nwant\n%s", s.Status, got, want)
	}
}

// TestChannelsRefuse: an error names the event as it was sent, and no event of the request
// is appended. A repetition of a producer is not refused.
func TestChannelsRefuse(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	const result = `{"channel":"toolCalls","id":"t1","agentId":"a1","tool":"Read","output":"text","status":"complete"}`
	send := func(body string) (int, string) {
		r := httptest.NewRequest("POST", rest.Root+"/sessions/s/events", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if body == result {
			r.Header.Set("Producer-Id", "p")
			r.Header.Set("Producer-Epoch", "0")
			r.Header.Set("Producer-Seq", "0")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := send(result); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	for _, tt := range []struct {
		body, want string
		code       int
	}{
		{result, `"duplicate":true`, 200},
		{`[{"channel":"chunks","id":"c","agentId":"a2","text":"x"},{"channel":"chunks","id":"c","agentId":"../a","text":"x"}]`, `event 2: the agentId \"../a\" must begin`, 400},
		{`{"channel":"chunks","id":"c","agentId":"a b","text":"x"}`, `"message":"the agentId \"a b\" has a character`, 400},
		{`{"channel":"chunks","id":"c5","agentId":"a1"}`, `the event of the channel chunks has no text`, 400},
	} {
		if code, body := send(tt.body); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s\nanswers %d %s", tt.body, code, body)
		}
	}
	s, err := g.Head(t.Context(), "s")
	if err != nil || s.Head != 6 {
		t.Errorf("the head is %d, %v", s.Head, err)
	}
}
