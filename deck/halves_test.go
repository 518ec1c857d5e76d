package deck_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/internal/decktest"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// halvesRun is a run of an agent that cuts its texts by UTF-16 units.
const halvesRun = `RUN_STARTED {"threadId":"main","runId":"r"}
REASONING_START {"messageId":"rs"}
REASONING_MESSAGE_START {"messageId":"rm","role":"reasoning"}
REASONING_MESSAGE_CONTENT {"messageId":"rm","delta":"hm \ud83d"}
REASONING_MESSAGE_CONTENT {"messageId":"rm","delta":"\udE80 so"}
REASONING_MESSAGE_END {"messageId":"rm"}
REASONING_END {"messageId":"rs"}
TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"go \ud83d"}
TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"\ude80 on"}
TEXT_MESSAGE_END {"messageId":"m"}
TOOL_CALL_START {"toolCallId":"c","toolCallName":"look"}
TOOL_CALL_ARGS {"toolCallId":"c","delta":"{\"q\":\"at \ud83d"}
TOOL_CALL_ARGS {"toolCallId":"c","delta":"\ude80 too\"}"}
TOOL_CALL_END {"toolCallId":"c"}
TOOL_CALL_RESULT {"messageId":"t","toolCallId":"c","content":"seen"}
RUN_FINISHED {"threadId":"main","runId":"r"}`

const (
	halvesThought, halvesText, halvesArgs = "hm 🚀 so", "go 🚀 on", `{"q":"at 🚀 too"}`
)

// A halvesReader is a stream that is open while the agent works. Its client joins the pieces
// of a text as JavaScript joins strings.
type halvesReader struct {
	request string
	names   []string
	want    []string
	client  apitest.Client
}

func newHalvesWorld(t *testing.T) *decktest.World {
	w := decktest.New(t)
	if _, err := w.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	return w
}

func addHalves(w *decktest.World, line string) {
	w.Helper()
	typ, data, _ := strings.Cut(line, " ")
	e := tapedeck.Event{Type: typ, Invocation: "r", Data: []byte(data)}
	if _, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{e}}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// Every stream that is open while halves of characters arrive gives its client the whole
// characters.
func TestHalvesInStreams(t *testing.T) {
	all := []string{halvesThought, halvesText, halvesArgs}
	readers := []*halvesReader{
		{request: "GET /api/v1/sessions/s/stream\nAccept: text/event-stream", names: []string{"delta"}, want: all},
		{request: "GET /sse/v1/sessions/s/events?from=0\nAccept: text/event-stream", names: []string{"text", "tool_input"}, want: []string{halvesThought, halvesText + halvesText, "at 🚀 too"}},
		{request: "GET /aisdk/steps/s/stream", names: []string{"delta", "inputTextDelta"}, want: all},
		{request: "POST /agui/steps/connect\nContent-Type: application/json\n\n" + `{"protocolVersion":"1.0","threadId":"s","runId":"x","messages":[]}`, names: []string{"delta"}, want: all},
		{request: "GET /v1/stream/sessions/s/views/text?live=sse&offset=-1", want: []string{halvesText}},
		{request: "GET /v1/stream/sessions/s/views/agui?live=sse&offset=-1", names: []string{"delta"}, want: all},
		{request: "GET /v1/stream/sessions/s/views/messages?live=sse&offset=-1", names: []string{"content", "arguments"}, want: all},
		{request: "POST /a2a/steps\nA2A-Version: 1.0\nContent-Type: application/json\n\n" + `{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"s~r"}}`, names: []string{"text"}, want: []string{halvesText + halvesText}},
	}
	synctest.Test(t, func(t *testing.T) {
		w := newHalvesWorld(t)
		for i, line := range slices.Collect(strings.Lines(halvesRun)) {
			addHalves(w, strings.TrimSpace(line))
			if i > 0 {
				continue
			}
			for _, r := range readers { // after the beginning of the run
				r.client.Send(w.Handler, apitest.Request(t, []byte(r.request)))
			}
			synctest.Wait()
		}
		for _, r := range readers {
			got := r.client.Text()
			r.client.Disconnect()
			var p payload.Piece
			for line := range strings.Lines(got) {
				if data, ok := strings.CutPrefix(line, "data:"); ok && len(r.names) > 0 {
					p += stringsOf([]byte(strings.TrimSpace(data)), r.names)
				} else if ok && !strings.Contains(line, "streamNextOffset") {
					p += payload.Piece(strings.TrimSuffix(data, "\n"))
				}
			}
			for _, want := range r.want {
				if !strings.Contains(p.Whole(), want) {
					t.Errorf("%s: there is no %q in %q", r.request, want, p.Whole())
				}
			}
		}
	})
}

// stringsOf joins the values of the members with these names, at any depth.
func stringsOf(raw []byte, names []string) (p payload.Piece) {
	raw = jsonobj.SkipSpace(raw)
	if len(raw) > 0 && raw[0] == '[' {
		list := jsonobj.ReadArray(raw)
		for v, ok := list.Next(); ok; v, ok = list.Next() {
			p += stringsOf(v, names)
		}
		return p
	}
	if len(raw) == 0 || raw[0] != '{' {
		return ""
	}
	o := jsonobj.Read(raw)
	for name, v, ok := o.Next(); ok; name, v, ok = o.Next() {
		switch {
		case slices.Contains(names, string(name)) && jsonobj.IsString(v):
			p += jsonobj.PieceOf(v)
		case slices.Contains(names, string(name)) && name[0] == 't':
			p += payload.Piece(v)
		default:
			p += stringsOf(v, names)
		}
	}
	return p
}

// Every view, export and history of a session has the whole characters.
func TestHalvesInViews(t *testing.T) {
	quoted := func(s string) string { return strings.Trim(string(jsonobj.AppendJSON(nil, s)), `"`) }
	all := []string{halvesThought, halvesText, quoted(halvesArgs)}
	said := []string{halvesText, quoted(halvesArgs)}
	synctest.Test(t, func(t *testing.T) {
		w := newHalvesWorld(t)
		for line := range strings.Lines(halvesRun) {
			addHalves(w, strings.TrimSpace(line))
		}
		for _, c := range []struct {
			request string
			want    []string
		}{
			{"GET /api/v1/sessions/s/snapshot", all},
			{"GET /api/v1/sessions/s/messages", []string{halvesThought, halvesText}},
			{"GET /api/v1/sessions/s/context", said},
			{"GET /api/v1/sessions/s/events/history", []string{halvesThought, halvesText, "at 🚀 too"}},
			{"GET /api/v1/sessions?summary=true", []string{halvesText}},
			{"GET /api/v1/diff?a=s&b=s&at_b=2", []string{halvesThought, halvesText, "at 🚀 too"}},
			{"GET /api/v1/search?q=go", []string{"🚀 on"}},
			{"GET /api/v1/search?q=too", []string{"🚀 «too»"}},
			{"GET /api/v1/search?q=hm", []string{"🚀 so"}},
			{"POST /api/v1/sessions/s/export\nContent-Type: application/json\n\n" + `{"format":"markdown"}`, []string{halvesThought, halvesText, "at 🚀 too"}},
			{"POST /api/v1/sessions/s/export\nContent-Type: application/json\n\n" + `{"format":"json"}`, all},
			{"GET /aisdk/steps/s/messages", []string{halvesThought, halvesText, halvesArgs}},
			{"GET /api/sessions/s/tasks", []string{halvesText, "at 🚀 too"}},
			{"GET /v1/stream/sessions/s/views/text", []string{halvesText}},
			{"GET /v1/stream/sessions/s/views/messages", all},
			{"POST /agui/steps/connect\nContent-Type: application/json\n\n" + `{"protocolVersion":"1.0","threadId":"s","runId":"x","messages":[]}`, nil},
			{"POST /a2a/steps\nA2A-Version: 1.0\nContent-Type: application/json\n\n" + `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"s~r"}}`, []string{halvesText, "at 🚀 too"}},
		} {
			got := string(apitest.Ask(t, w.Handler, []byte(c.request)))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s: there is no %q in\n%s", c.request, want, got)
				}
			}
			if strings.Contains(got, "\ufffd") || strings.Contains(got, `\ufffd`) {
				t.Errorf("%s: a character is lost in\n%s", c.request, got)
			}
		}
	})
}

// A client that reads a view between two halves, and the events after it, has the whole
// characters; and the text view is the same from each offset.
func TestHalvesBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHalvesWorld(t)
		var connected []*apitest.Client
		for line := range strings.Lines(halvesRun) {
			addHalves(w, strings.TrimSpace(line))
			if !strings.Contains(line, `\ud83d`) {
				continue
			}
			c := new(apitest.Client)
			c.Send(w.Handler, apitest.Request(t, []byte("POST /agui/steps/connect\nContent-Type: application/json\n\n"+`{"protocolVersion":"1.0","threadId":"s","runId":"x","messages":[]}`)))
			connected = append(connected, c)
			synctest.Wait()
			for _, view := range []string{"snapshot", "messages"} {
				got := string(apitest.Ask(t, w.Handler, []byte("GET /api/v1/sessions/s/"+view)))
				if !strings.Contains(got, `\ud83d"`) && (view == "snapshot" || !strings.HasPrefix(line, "TOOL")) {
					t.Errorf("after %s: there is no half in\n%s", line, got)
				}
			}
		}
		for i, c := range connected {
			c.Disconnect()
			var p payload.Piece
			for line := range strings.Lines(c.Text()) {
				p += stringsOf([]byte(strings.TrimPrefix(line, "data:")), []string{"content", "arguments", "delta"})
			}
			if want := []string{halvesThought, halvesText, halvesArgs}[i]; !strings.Contains(p.Whole(), want) {
				t.Errorf("connected between halves: there is no %q in %q", want, p.Whole())
			}
		}
		whole, _ := body(string(apitest.Ask(t, w.Handler, []byte("GET /v1/stream/sessions/s/views/text"))))
		for from := range strings.Count(halvesRun, "\n") + 1 {
			target := fmt.Sprintf("/v1/stream/sessions/s/views/text?offset=%016d_%016d", from, 0)
			r := httptest.NewRecorder()
			w.Handler.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), "GET", target, nil))
			if part := r.Body.String(); r.Code != 200 || !strings.HasSuffix(whole, part) {
				t.Errorf("from %d: %q is no end of %q", from, part, whole)
			}
		}
	})
}

// What comes in with halves, in any form, is stored so that the conversation has the whole
// characters.
func TestHalvesFromClients(t *testing.T) {
	const sse = "Content-Type: text/event-stream\n\n"
	const chunks = `data: {"type":"start","messageId":"r"}

data: {"type":"reasoning-start","id":"0"}

data: {"type":"reasoning-delta","id":"0","delta":"hm \ud83d"}

data: {"type":"reasoning-delta","id":"0","delta":"\ude80 so"}

data: {"type":"reasoning-end","id":"0"}

data: {"type":"text-start","id":"0"}

data: {"type":"text-delta","id":"0","delta":"go \ud83d"}

data: {"type":"text-delta","id":"0","delta":"\ude80 on"}

data: {"type":"text-end","id":"0"}

data: {"type":"tool-input-start","toolCallId":"c","toolName":"look"}

data: {"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{\"q\":\"at \ud83d"}

data: {"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"\ude80 too\"}"}

data: {"type":"tool-output-available","toolCallId":"c","output":"seen"}

data: {"type":"finish"}

data: [DONE]

`
	var ag strings.Builder
	for line := range strings.Lines(halvesRun) {
		typ, data, _ := strings.Cut(strings.TrimSpace(line), " ")
		fmt.Fprintf(&ag, "data: {\"type\":%q,%s\n\n", typ, data[1:])
	}
	for name, c := range map[string]struct {
		requests []string
		want     []string
	}{
		"AI SDK": {[]string{"POST /aisdk/steps/s/events\n" + sse + chunks}, []string{halvesThought, halvesText, halvesArgs}},
		"AG-UI":  {[]string{"POST /agui/steps/events/s\n" + sse + ag.String()}, []string{halvesThought, halvesText, halvesArgs}},
		"channels": {[]string{
			"POST /api/v1/sessions/s/events\nContent-Type: application/json\n\n" + `{"channel":"chunks","id":"c","agentId":"a","text":"go \ud83d","turn":1}`,
			"POST /api/v1/sessions/s/events\nContent-Type: application/json\n\n" + `{"channel":"chunks","id":"c","agentId":"a","text":"\ude80 on","turn":1}`,
		}, []string{halvesText}},
		"Durable Streams": {[]string{
			"POST /v1/stream/sessions/s\nContent-Type: application/json\n\n" + `[{"type":"RUN_STARTED","invocation":"i","data":{"threadId":"main","runId":"i"}},{"type":"TEXT_MESSAGE_CHUNK","invocation":"i","data":{"messageId":"m","delta":"go \ud83d"}}]`,
			"POST /v1/stream/sessions/s\nContent-Type: application/json\n\n" + `[{"type":"TEXT_MESSAGE_CHUNK","invocation":"i","data":{"delta":"\ude80 on"}}]`,
		}, []string{halvesText}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newHalvesWorld(t)
			for _, r := range c.requests {
				if got := string(apitest.Ask(t, w.Handler, []byte(r))); !strings.HasPrefix(got, "2") {
					t.Fatalf("%s: %s", name, got)
				}
			}
			s, err := w.Session("s").Snapshot(t.Context(), view.Query{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range s.Messages {
				got = append(got, s.Messages[i].Text)
			}
			for i := range s.Calls {
				got = append(got, s.Calls[i].Arguments)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		})
	}
}

// body returns the body of a response as [apitest.Ask] shows it.
func body(response string) (string, bool) {
	_, b, ok := strings.Cut(response, "\n\n")
	return b, ok
}
