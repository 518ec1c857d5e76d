package agui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/decktest"
)

// Requests that are wrong, or that want to do harm. None of them may start a run,
// create a session, or break the server.
func TestHostileRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const words = `"messages":[{"id":"u","role":"user","content":"hi"}]`
		deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
		for name, test := range map[string]struct {
			path, media, body string
			status            int
			says              string
		}{
			"no body":              {"/agui/steps", "application/json", "", 400, "not a JSON object"},
			"no type":              {"/agui/steps", "", "{}", 415, "content-type"},
			"an array":             {"/agui/steps", "application/json", "[]", 400, "not a JSON object"},
			"half a body":          {"/agui/steps", "application/json", `{"threadId":`, 400, "not a RunAgentInput"},
			"two values":           {"/agui/steps", "application/json", `{"threadId":"t"} {}`, 400, "not a RunAgentInput"},
			"no UTF-8":             {"/agui/steps", "application/json", "{\"threadId\":\"\xff\"}", 400, "not valid UTF-8"},
			"a number as a thread": {"/agui/steps", "application/json", `{"threadId":1}`, 400, "threadId of the input cannot be a JSON number"},
			"no thread":            {"/agui/steps", "application/json", `{"runId":"r",` + words + `}`, 400, "the threadId"},
			"a path as a thread":   {"/agui/steps", "application/json", `{"threadId":"../x",` + words + `}`, 400, "the threadId"},
			"two slashes":          {"/agui/steps", "application/json", `{"threadId":"a/b/c",` + words + `}`, 400, "the thread in the threadId"},
			"a null byte":          {"/agui/steps", "application/json", `{"threadId":"a\u0000b",` + words + `}`, 400, "the threadId"},
			"a line in an id":      {"/agui/steps", "application/json", `{"threadId":"t","runId":"a\ndata: x",` + words + `}`, 400, "the runId"},
			"a long id":            {"/agui/steps", "application/json", `{"threadId":"t","runId":"` + strings.Repeat("r", 129) + `",` + words + `}`, 400, "the runId"},
			"a stream as a thread": {"/agui/steps", "application/json", `{"threadId":"stream/x",` + words + `}`, 200, ""},
			"an unknown agent":     {"/agui/nobody", "application/json", `{"threadId":"t",` + words + `}`, 404, "there is no agent"},
			"a deep state":         {"/agui/steps", "application/json", `{"threadId":"t","state":` + deep + `,` + words + `}`, 400, "nested more than"},
			"messages of no list":  {"/agui/steps", "application/json", `{"threadId":"t","messages":{}}`, 400, "messages of the input"},
			"no message":           {"/agui/steps", "application/json", `{"threadId":"t","messages":[]}`, 400, "no new message"},
			"an answer to nothing": {"/agui/steps", "application/json", `{"threadId":"t","messages":[{"id":"a","role":"assistant","content":"x"}]}`, 200, ""},
			"a strange role":       {"/agui/steps", "application/json", `{"threadId":"n1","messages":[{"id":"u","role":"root","content":"hi"}]}`, 400, `the role "root"`},
			"no role":              {"/agui/steps", "application/json", `{"threadId":"n1","messages":[{"id":"u"}]}`, 400, "role"},
			"content of no shape":  {"/agui/steps", "application/json", `{"threadId":"n1","messages":[{"id":"u","role":"user","content":5}]}`, 400, "the content of the user message"},
			"resume of no shape":   {"/agui/steps", "application/json", `{"threadId":"n1","messages":[],"resume":{}}`, 400, "not a RunAgentInput"},
			"answers to nobody":    {"/agui/steps", "application/json", `{"threadId":"n2","messages":[],"resume":[{"interruptId":"x","status":"resolved"}]}`, 404, `no interrupt "x"`},
			"two of one id":        {"/agui/steps", "application/json", `{"threadId":"n2","messages":[{"id":"u","role":"user","content":"hi"},{"id":"u","role":"user","content":"ho"}]}`, 400, `two new messages have the id "u"`},
			"members of later":     {"/agui/steps", "application/json", `{"threadId":"t2","later":1,` + words + `}`, 200, ""},
			"tools of no shape":    {"/agui/steps", "application/json", `{"threadId":"n1","tools":{},` + words + `}`, 400, "tools"},
			"an unknown path":      {"/agui/steps/nothing", "application/json", "{}", 404, "nothing at"},
			"a connect of nobody":  {"/agui/nobody/connect", "application/json", `{"threadId":"t"}`, 404, "there is no agent"},
			"stop of a bad thread": {"/agui/steps/stop/..%2Fx", "application/json", "{}", 404, "nothing at"},
			"stop of a bad id":     {"/agui/steps/stop/a%00b", "application/json", "{}", 400, "the threadId"},
			"stop of a bad run":    {"/agui/steps/stop/t", "application/json", `{"runId":5}`, 400, "the runId must be a string"},
			"events of no type":    {"/agui/out/events/e1", "application/json", `[{"a":1}]`, 400, `event 1 has the type ""`},
			"events of the log":    {"/agui/out/events/e1", "application/json", `[{"type":"session.closed"}]`, 400, "which is not one of AG-UI"},
			"events of no run":     {"/agui/out/events/e1", "application/json", `[{"type":"CUSTOM","name":"a","value":1}]`, 409, "no open run"},
			"a run without an id":  {"/agui/out/events/e1", "application/json", `[{"type":"RUN_STARTED"}]`, 400, "has no runId"},
			"events that are none": {"/agui/out/events/e1", "application/x-ndjson", "5\n", 400, `event 1`},
			"half an event":        {"/agui/out/events/e1", "text/event-stream", "data: {\"type\":\n\n", 400, "event 1"},
			"no events":            {"/agui/out/events/e1", "text/event-stream", ": hello\n\n", 400, "no events in the body"},
			"events as HTML":       {"/agui/out/events/e1", "text/html", "<p>", 415, "not understood"},
			"a foreign owner":      {"/agui/out/events/e2", "application/json", `[{"type":"RUN_STARTED","threadId":"t","runId":"r","metadata":{"tapedeck":{"owner":"eng_x"}}},{"type":"RUN_FINISHED","threadId":"t","runId":"r"}]`, 200, ""},
			"a bad agent":          {"/agui/..%2f/events/e1", "application/json", `[]`, 404, "nothing at"},
			"half a producer":      {"/agui/out/events/e1", "application/json", `[{"type":"RUN_STARTED","runId":"r"}]`, 400, "go together"},
			"a bad limit":          {"GET /copilotkit/threads?limit=0", "", "", 400, "limit"},
			"an unknown parameter": {"GET /copilotkit/threads?order=x", "", "", 400, "there is no parameter"},
			"a bad cursor":         {"GET /copilotkit/threads?cursor=x", "", "", 400, "cursor"},
			"a thread that is not": {"PATCH /copilotkit/threads/none", "application/json", `{"name":"x"}`, 404, "none"},
			"a bad name":           {"PATCH /copilotkit/threads/t", "application/json", `{"name":"a\u0000"}`, 400, "control character"},
			"a name of no shape":   {"PATCH /copilotkit/threads/t", "application/json", `{"name":7}`, 400, "must be strings"},
			"a lane as a thread":   {"DELETE /copilotkit/threads/t%2Fx", "", "", 400, "the thread"},
			"a body of no shape":   {"/copilotkit", "application/json", `{"method":"agent/run","params":{"agentId":"steps"},"body":5}`, 400, "not a RunAgentInput"},
		} {
			method, path, named := strings.Cut(test.path, " ")
			if !named {
				method, path = "POST", test.path
			}
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(test.body))
			if test.media != "" {
				r.Header.Set("Content-Type", test.media)
			}
			if name == "half a producer" {
				r.Header.Set("Producer-Id", "p")
			}
			got := httptest.NewRecorder()
			w.Handler.ServeHTTP(got, r)
			var body struct {
				Error struct{ Message, Hint string }
			}
			_ = json.Unmarshal(got.Body.Bytes(), &body)
			if said := strings.ToLower(body.Error.Message + " " + body.Error.Hint); got.Code != test.status || !strings.Contains(said, strings.ToLower(test.says)) {
				t.Errorf("%s: %d %.300s", name, got.Code, got.Body)
			}
		}
		list, err := w.Sessions(t.Context(), tapedeck.Filter{})
		for _, s := range list.Sessions {
			switch s.ID {
			case "t", "t2", "stream", "e2":
			default:
				t.Errorf("the session %s was created", s.ID)
			}
			if s.Status == tapedeck.StatusRunning {
				t.Errorf("the session %s has an open run", s.ID)
			}
		}
		if err != nil || len(list.Sessions) != 4 {
			t.Errorf("%d sessions, %v", len(list.Sessions), err)
		}
	})
}

// What an agent and a user say cannot break a frame or add an event.
func TestTextStaysInItsFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const evil = "a\n\ndata: {\"type\":\"RUN_FINISHED\"}\r\n\u2028</script>\x00"
		raw, _ := json.Marshal(evil)
		task := strings.ReplaceAll(decktest.Say("m", "X"), `"X"`, string(raw))
		for range 2 {
			f := &frontend{t: t}
			f.receive(w.run("/agui/steps"+map[bool]string{true: "/connect"}[len(w.Inputs) > 0], input("s", "r", "u", task)).events())
			if got := f.messages[len(f.messages)-1]["content"]; got != evil {
				t.Errorf("the text became %q", got)
			}
		}
	})
}

// A body that is larger than the limit is refused before it is read.
func TestBodyTooLarge(t *testing.T) {
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, NoScreen: true, AnyHost: true, MaxBody: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(t.Context()) }()
	for _, path := range []string{"/agui/x", "/agui/x/connect", "/agui/x/events/t", "/agui/x/stop/t", "/copilotkit"} {
		for _, length := range []int64{2000, -1} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(strings.Repeat("[", 2000)))
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = length
			got := httptest.NewRecorder()
			d.Handler().ServeHTTP(got, r)
			if got.Code != 413 {
				t.Errorf("%s: %d %s", path, got.Code, got.Body)
			}
		}
	}
}

// Every stream ends, also when the session is deleted or the server stops.
func TestEveryStreamEnds(t *testing.T) {
	says := map[string]string{"deleted": "there is no session", "stopped": "the server stops"}
	for name, end := range map[string]func(*world) error{
		"deleted": func(w *world) error { return w.Session("s").Delete(context.WithoutCancel(w.Context())) },
		"stopped": func(w *world) error { return w.Close(context.WithoutCancel(w.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if _, err := w.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
					t.Fatal(err)
				}
				w.mustAppend(sceneEvents()[:12]) // a run that no agent of the server drives
				r := w.open("/agui/steps/connect", input("s", "x", "u", ""))
				mine := w.open("/agui/steps", input("s/side", "mine", "u", "wait"))
				synctest.Wait()
				if err := end(w); err != nil {
					t.Error(err)
				}
				<-r.Done
				<-mine.Done
				events := r.events()
				last := events[len(events)-1]
				if said, _ := last["message"].(string); last["type"] != "RUN_ERROR" || !strings.HasPrefix(said, says[name]) {
					t.Errorf("the last event is %v", last)
				}
				events = mine.events() // the server ends its own run first, if it has time
				if last := events[len(events)-1]["type"]; last != "RUN_ERROR" && last != "RUN_FINISHED" {
					t.Errorf("the last event is %v", last)
				}
			})
		})
	}
}

// A client that disconnects cancels nothing and leaves nothing behind.
func TestDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.open("/agui/steps", input("s", "r", "u", decktest.Say("m", "one")+"\nwait\n"+decktest.Say("n", "two")))
		synctest.Wait()
		r.Disconnect()
		synctest.Wait()
		if n := w.Followers(); n != 0 {
			t.Errorf("%d followers are left", n)
		}
		w.Proceed <- struct{}{}
		f := &frontend{t: t}
		f.receive(w.run("/agui/steps/connect", input("s", "x", "u", "")).events())
		if fmt.Sprint(f.messages[len(f.messages)-1]["content"]) != "two" {
			t.Errorf("the front end shows\n%s", f)
		}
	})
}
