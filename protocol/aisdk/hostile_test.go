package aisdk_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/decktest"
)

// Requests that are wrong, or that want to do harm. None of them may start a run,
// create a session, or break the server.
func TestHostileRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const word = `{"id":"u","role":"user","parts":[{"type":"text","text":"hi"}]}`
		const words = `"messages":[` + word + `]`
		deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
		for name, test := range map[string]struct {
			path, media, body string
			status            int
			says              string
		}{
			"no body":                {"/aisdk/steps", "application/json", "", 400, "not a JSON object"},
			"no type":                {"/aisdk/steps", "", "{}", 415, "Content-Type"},
			"an array":               {"/aisdk/steps", "application/json", "[]", 400, "not a JSON object"},
			"half a body":            {"/aisdk/steps", "application/json", `{"id":`, 400, "not the request of a chat"},
			"two values":             {"/aisdk/steps", "application/json", `{"id":"t"} {}`, 400, "not the request of a chat"},
			"no UTF-8":               {"/aisdk/steps", "application/json", "{\"id\":\"\xff\"}", 400, "not valid UTF-8"},
			"a number as an id":      {"/aisdk/steps", "application/json", `{"id":1}`, 400, "member id of the body cannot be a JSON number"},
			"no id":                  {"/aisdk/steps", "application/json", `{` + words + `}`, 400, "the id of the chat"},
			"a path as an id":        {"/aisdk/steps", "application/json", `{"id":"../x",` + words + `}`, 400, "the id of the chat"},
			"a null byte":            {"/aisdk/steps", "application/json", `{"id":"a\u0000b",` + words + `}`, 400, "the id of the chat"},
			"a line in an id":        {"/aisdk/steps", "application/json", `{"id":"a\ndata: x",` + words + `}`, 400, "the id of the chat"},
			"a long id":              {"/aisdk/steps", "application/json", `{"id":"` + strings.Repeat("r", 129) + `",` + words + `}`, 400, "the id of the chat"},
			"an unknown agent":       {"/aisdk/nobody", "application/json", `{"id":"t",` + words + `}`, 404, "there is no agent"},
			"markup as an agent":     {"/aisdk/%3Cscript%3E", "application/json", `{"id":"t",` + words + `}`, 404, "there is no agent"},
			"a deep part":            {"/aisdk/steps", "application/json", `{"id":"t","messages":[{"id":"u","role":"user","parts":` + deep + `}]}`, 400, "nested more than"},
			"an unknown trigger":     {"/aisdk/steps", "application/json", `{"id":"t","trigger":"now",` + words + `}`, 400, "the trigger must be"},
			"messages of no list":    {"/aisdk/steps", "application/json", `{"id":"t","messages":{}}`, 400, "member messages"},
			"no message":             {"/aisdk/steps", "application/json", `{"id":"t","messages":[]}`, 400, "no messages"},
			"a message without id":   {"/aisdk/steps", "application/json", `{"id":"t","messages":[{"role":"user","parts":[{"type":"text","text":"hi"}]}]}`, 400, "has no id"},
			"a strange role":         {"/aisdk/steps", "application/json", `{"id":"t","messages":[{"id":"u","role":"root","parts":[]}]}`, 400, `the role "root"`},
			"an empty answer":        {"/aisdk/steps", "application/json", `{"id":"t","messages":[{"id":"a","role":"assistant","parts":[{"type":"reasoning","text":"x"}]}]}`, 400, "no new message"},
			"parts of no list":       {"/aisdk/steps", "application/json", `{"id":"t","messages":[{"id":"u","role":"user","parts":"hi"}]}`, 400, "cannot be a JSON string"},
			"a file without a url":   {"/aisdk/steps", "application/json", `{"id":"t","messages":[{"id":"u","role":"user","parts":[{"type":"file","mediaType":"a/b"}]}]}`, 400, "no url"},
			"two of one id":          {"/aisdk/steps", "application/json", `{"id":"t","messages":[` + word + `,` + word + `]}`, 400, `two new messages have the id "u"`},
			"no text and no file":    {"/aisdk/steps", "application/json", `{"id":"t","messages":[{"id":"u","role":"user","parts":[{"type":"data-place","data":{}}]}]}`, 400, `the message "u" has neither a text nor a file`},
			"a bad trigger to add":   {"/aisdk/web/t/messages", "application/json", `{"trigger":"now",` + words + `}`, 400, "the trigger must be"},
			"an approval of none":    {"/aisdk/steps", "application/json", `{"id":"t","messages":[{"id":"a","role":"assistant","parts":[{"type":"tool-x","toolCallId":"c","state":"approval-responded","approval":{"id":"q","approved":true}}]}]}`, 404, `no question "q"`},
			"an unknown path":        {"/aisdk/steps/t/nothing", "application/json", "{}", 404, "nothing at"},
			"a stop elsewhere":       {"/aisdk/web/t/stop", "", "", 200, `{"stopped":false}`},
			"a stop of a bad id":     {"/aisdk/steps/a%00b/stop", "", "", 400, "the id of the chat"},
			"a stop before a start":  {"/aisdk/steps/t/stop", "", "", 200, `{"stopped":false}`},
			"a stream of a bad id":   {"GET /aisdk/steps/a%20b/stream", "", "", 400, "the id of the chat"},
			"a stream of a bad name": {"GET /aisdk/a%20b/t/stream", "", "", 400, "the name of the agent"},
			"messages of a bad name": {"GET /aisdk/%3Cscript%3E/t/messages", "", "", 400, "the name of the agent"},
			"a stream by POST":       {"/aisdk/steps/t/stream", "", "", 405, "GET"},
			"JSON as a stream":       {"/aisdk/web/t/events", "application/json", "{}", 415, "text/event-stream"},
			"a bad writer":           {"/aisdk/a%20b/t/events", "text/event-stream", "", 400, "the name of the agent"},
			"no chunk":               {"/aisdk/web/t/events", "text/event-stream", "", 400, "ended before"},
			"a chunk of no JSON":     {"/aisdk/web/t/events", "text/event-stream", "data: {\n\n", 400, "not a JSON object with a type"},
			"a chunk of no type":     {"/aisdk/web/t/events", "text/event-stream", "data: {}\n\n", 400, "not a JSON object with a type"},
			"a deep chunk":           {"/aisdk/web/t/events", "text/event-stream", `data: {"type":"data-x","data":` + deep + "}\n\n", 400, "nested more than"},
			"added by a bad id":      {"/aisdk/web/a%20b/messages", "application/json", `{` + words + `}`, 400, "the id of the chat"},
		} {
			method, path, named := strings.Cut(test.path, " ")
			if !named {
				method, path = "POST", test.path
			}
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(test.body))
			if test.media != "" {
				r.Header.Set("Content-Type", test.media)
			}
			got := httptest.NewRecorder()
			w.Handler.ServeHTTP(got, r)
			if got.Code != test.status || !strings.Contains(got.Body.String(), test.says) {
				t.Errorf("%s: %d %.300s", name, got.Code, got.Body)
			}
			if kind := got.Header().Get("Content-Type"); strings.Contains(kind, "html") || got.Code >= 400 && got.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: a browser may show the answer as a page: %v", name, got.Header())
			}
		}
		list, err := w.Sessions(t.Context(), tapedeck.Filter{})
		if err != nil || len(list.Sessions) != 0 {
			t.Errorf("the sessions %v were created, %v", list.Sessions, err)
		}
	})
}

// A version that does not exist is refused before anything starts.
func TestWrongVersion(t *testing.T) {
	w := newWorld(t)
	for _, v := range []string{"4", "five", "5 6", strings.Repeat("7", 100)} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/aisdk/steps", strings.NewReader(request("c", "u", "hi")))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Tapedeck-AI-SDK-Version", v)
		got := httptest.NewRecorder()
		w.Handler.ServeHTTP(got, r)
		if got.Code != 400 || len(w.Inputs) != 0 {
			t.Errorf("%s: %d %s", v, got.Code, got.Body)
		}
	}
}

// What an agent says cannot break a frame or add a chunk.
func TestTextStaysInItsFrame(t *testing.T) {
	w := newWorld(t)
	const evil = "a\n\ndata: {\"type\":\"error\"}\n\n\r\u2028</script>\x00"
	r := w.run("/aisdk/steps", request("c", "u", decktest.Say("m\n\ndata: x", evil)))
	types := []string{}
	for _, f := range r.Frames(t) {
		if string(f.Data) == "[DONE]" {
			continue
		}
		var c struct{ Type, Delta, ID string }
		if err := json.Unmarshal(f.Data, &c); err != nil {
			t.Fatalf("%v in %s", err, f.Data)
		}
		if types = append(types, c.Type); c.Type == "text-delta" && (c.Delta != evil || c.ID != "m\n\ndata: x") {
			t.Errorf("the client got %q", c)
		}
	}
	if got := strings.Join(types, " "); got != "start start-step text-start text-delta text-end finish-step finish" {
		t.Errorf("the chunks are %s", got)
	}
}

// The messages of a chat have lists of parts, also if the log has a content that is no part.
func TestPartsAreLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.Create(t.Context(), api.NewSession{ID: "c"}); err != nil {
			t.Fatal(err)
		}
		var events []tapedeck.Event
		for i, content := range []string{`[]`, `[{"type":"zzz"}]`, `""`, `null`} {
			for _, role := range []string{"user", "assistant", "system"} {
				events = append(events, tapedeck.Event{Type: tapedeck.MessageAdded, Data: fmt.Appendf(nil, `{"message":{"id":"%s%d","role":%q,"content":%s}}`, role, i, role, content)})
			}
		}
		if _, err := w.Session("c").Append(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
		list := w.loaded("c")
		for _, m := range list {
			if _, ok := m["parts"].([]any); !ok {
				t.Errorf("%v", m)
			}
		}
		if len(list) != len(events) {
			t.Errorf("%d of %d messages", len(list), len(events))
		}
	})
}
