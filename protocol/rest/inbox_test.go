package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

func getInbox(t *testing.T, handler http.Handler, query string) api.Inbox {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/inbox"+query, nil))
	var in api.Inbox
	if err := json.Unmarshal(w.Body.Bytes(), &in); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %v %s", query, w.Code, err, w.Body)
	}
	return in
}

// idsIn returns the sessions and ids of the questions of a page.
func idsIn(in api.Inbox) string {
	var out []string
	for _, q := range in.Questions {
		out = append(out, q.Session.ID+"/"+q.Question.ID)
	}
	return strings.Join(out, " ")
}

// The inbox has the questions of all sessions, newest first, each whole, and none that
// no longer waits.
func TestInbox(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	if in := getInbox(t, handler, ""); in.Questions == nil || in.Total != 0 {
		t.Errorf("an empty inbox: %+v", in)
	}
	begin := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	event := func(second int, typ, invocation, data string) tapedeck.Event {
		return tapedeck.Event{Time: begin.Add(time.Duration(second) * time.Second), Type: typ, Invocation: invocation, Data: json.RawMessage(data)}
	}
	command := strings.Repeat("echo x; ", 200) + "rm -rf /"
	for i, id := range []string{"a", "b", "c"} {
		g.session(t, id, 0)
		g.append(t, id, event(i, "RUN_STARTED", "i", `{"runId":"i","threadId":"t"}`),
			event(10-i, "permission.requested", "i", fmt.Sprintf(`{"id":"p","message":"May I?","action":{"tool":"Bash","command":%q},"options":[{"id":"yes"}],"form":[{"id":"n","type":"integer"}]}`, command)))
	}
	g.append(t, "a", event(20, "permission.requested", "i", `{"id":"q","options":[{"id":"yes"}]}`))
	in := getInbox(t, handler, "")
	if got := idsIn(in); got != "a/q a/p b/p c/p" || in.Total != 4 || in.Next != "" {
		t.Fatalf("got %s of %d", got, in.Total)
	}
	q := in.Questions[1].Question
	if !strings.Contains(string(q.Action), command) || q.Offset != 2 || q.Invocation != "i" || q.Status != "open" || len(q.Form) == 0 || !q.StartedAt.Equal(begin.Add(10*time.Second)) {
		t.Errorf("the question is not whole: %+v", q)
	}
	var pages []string
	for cursor := ""; ; {
		in := getInbox(t, handler, "?limit=1&cursor="+cursor)
		pages = append(pages, idsIn(in))
		if cursor = in.Next; cursor == "" {
			break
		}
	}
	if got := strings.Join(pages, " "); got != "a/q a/p b/p c/p" {
		t.Errorf("by pages: %s", got)
	}
	first := getInbox(t, handler, "?limit=2")
	g.append(t, "a", event(30, "permission.answered", "i", `{"id":"p","option":"yes"}`))
	if err := g.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if got := idsIn(getInbox(t, handler, "?cursor="+first.Next)); got != "b/p" {
		t.Errorf("after an answer and a deletion: %s", got)
	}
	g.append(t, "b", event(31, "RUN_ERROR", "i", `{"message":"broken"}`))
	if got := idsIn(getInbox(t, handler, "")); got != "a/q" {
		t.Errorf("after the end of a run: %s", got)
	}
	if got := idsIn(getInbox(t, handler, "?agent=nobody")); got != "" {
		t.Errorf("of another agent: %s", got)
	}
	for _, query := range []string{"cursor=x", "cursor=1-2", "cursor=1-2-3-4", "cursor=1-2-3%20.", "limit=0", "status=idle"} {
		if status, e := send(t, handler, "GET", "/inbox?"+query, "", nil); status != 400 {
			t.Errorf("%s: %d %s", query, status, e.Message)
		}
	}
}
