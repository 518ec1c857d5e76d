package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/store/memory"
)

// send sends a body and returns the status, and the error if there is one.
func send(t *testing.T, handler http.Handler, method, path, contentType string, body io.Reader) (int, tapedeck.Error) {
	t.Helper()
	r := httptest.NewRequest(method, "/api/v1"+path, body).WithContext(t.Context())
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var out struct{ Error tapedeck.Error }
	if w.Code >= 400 && (json.Unmarshal(w.Body.Bytes(), &out) != nil || out.Error.Kind == "" || out.Error.Message == "") {
		t.Errorf("%s %s: the error is %s", method, path, w.Body)
	}
	return w.Code, out.Error
}

const (
	asJSON  = "application/json"
	asLines = "application/x-ndjson"
)

func TestHostileBodies(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	closed := strings.Repeat("]", 100_000)
	for _, c := range []struct {
		name, path, contentType, body string
		status                        int
	}{
		{"no UTF-8 in a string", "/sessions", asJSON, "{\"title\":\"\xff\"}", 400},
		{"no UTF-8 in data", "/sessions/s/events", asJSON, "{\"type\":\"x\",\"data\":{\"a\":\"\xff\"}}", 400},
		{"no UTF-8 in a line", "/sessions/s/events", asLines, "{\"type\":\"x\",\"actor\":\"\xff\"}\n", 400},
		{"no UTF-8 in a name", "/sessions/s/events", asLines, "{\"type\":\"x\",\"data\":{\"\xff\":1}}\n", 400},
		{"NUL in a type", "/sessions/s/events", asJSON, `{"type":"a\u0000b"}`, 400},
		{"NUL byte", "/sessions/s/events", asJSON, "{\"type\":\"a\"}\x00", 400},
		{"control characters in an actor", "/sessions/s/events", asJSON, `{"type":"a","actor":"\u001b[2J"}`, 400},
		{"byte order mark", "/sessions", asJSON, "\ufeff{}", 400},
		{"UTF-16", "/sessions", asJSON, "\xff\xfe{\x00}\x00", 400},
		{"a path for a thread", "/sessions/s/events", asJSON, `{"type":"a","thread":"../../etc"}`, 400},
		{"an id of 4 KB", "/sessions/s/events", asJSON, `{"type":"a","invocation":"` + strings.Repeat("i", 4096) + `"}`, 400},
		{"negative turn", "/sessions/s/events", asJSON, `{"type":"a","turn":-1}`, 400},
		{"turn beyond any integer", "/sessions/s/events", asJSON, `{"type":"a","turn":1e400}`, 400},
		{"deep data", "/sessions/s/events", asJSON, `{"type":"a","data":{"x":` + deep + closed + `}}`, 400},
		{"deep array of events", "/sessions/s/events", asJSON, deep + closed, 400},
		{"deep state", "/sessions", asJSON, `{"state":` + deep + closed + `}`, 400},
		{"a second array", "/sessions/s/events", asJSON, `[{"type":"a"}][{"type":"b"}]`, 400},
		{"a trailing comma", "/sessions/s/events", asJSON, `[{"type":"a"},]`, 400},
		{"half an event", "/sessions/s/events", asJSON, `{"type":"a","data":{"x":1}`, 400},
		{"half a last line", "/sessions/s/events", asLines, "{\"type\":\"a\"}\n{\"type\":\"b\",\"da", 400},
		{"hidden member after data", "/sessions/s/events", asJSON, `{"type":"a","data":{"x":1},"offset":"y"}`, 400},
		{"no type", "/sessions/s/events", asJSON, `{"data":{}}`, 400},
		{"null", "/sessions/s/events", asJSON, `null`, 400},
		{"null in an array", "/sessions/s/events", asJSON, `[null]`, 400},
		{"an array of arrays", "/sessions/s/events", asJSON, `[[{"type":"a"}]]`, 400},
		{"too many events", "/sessions/s/events", asLines, strings.Repeat("{\"type\":\"a\"}\n", 100_001), 413},
		{"too many events in an array", "/sessions/s/events", asJSON, "[" + strings.Repeat(`{"type":"a"},`, 100_000) + `{"type":"a"}]`, 413},
		{"no marker", "/sessions/s/undo", asJSON, `{"marker":""}`, 400},
		{"a member twice", "/sessions/s/rewind", asJSON, `{"to_offset":0,"to_offset":1}`, 400},
		{"a member twice, in another case", "/sessions/s/rewind", asJSON, `{"to_offset":0,"TO_OFFSET":1}`, 400},
		{"a member twice, written otherwise", "/sessions", asJSON, `{"title":"a","t\u0069tle":"b"}`, 400},
		{"a member twice, around deep data", "/sessions", asJSON, `{"id":"a","state":{"id":[{}]},"id":"b"}`, 400},
		{"a name twice in an object inside", "/sessions", asJSON, `{"id":"a","labels":{"n":"a","n":"b"}}`, 400},
		{"a name twice, written otherwise, in an object inside", "/sessions", asJSON, `{"id":"a","labels":{"n":"a","\u006e":"b"}}`, 400},
		{"a name twice deep inside", "/sessions", asJSON, `{"id":"a","state":{"x":[1e400,{"n":1},{"n":{"m":[],"n":"m","m":{}}}]}}`, 400},
		{"large body", "/sessions", asJSON, `{"title":"` + strings.Repeat("x", 2<<20) + `"}`, 413},
		{"large append", "/sessions/s/events", asJSON, `{"type":"a","data":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`, 413},
		{"large line", "/sessions/s/events", asLines, strings.Repeat(" ", 5<<20), 413},
		{"large import", "/import?format=lines", asLines, strings.Repeat("x\n", 3<<20), 413},
		{"large space after an event", "/sessions/s/events", asJSON, `{"type":"a"}` + strings.Repeat(" ", 5<<20), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			handler, g := newHandler(rest.Options{MaxBody: 1 << 20, MaxAppend: 4 << 20, MaxImport: 4 << 20})
			g.session(t, "s", 0)
			if status, e := send(t, handler, "POST", c.path, c.contentType, strings.NewReader(c.body)); status != c.status {
				t.Errorf("got %d %s, want %d", status, e.Message, c.status)
			}
			if s, _ := g.Head(t.Context(), "s"); s.Head != 1 {
				t.Errorf("%d events were written", s.Head-1)
			}
			if list, _ := g.List(t.Context(), tapedeck.Filter{}); len(list.Sessions) != 1 {
				t.Errorf("there are %d sessions", len(list.Sessions))
			}
		})
	}
}

// TestNamesInOtherObjects: a name that objects inside each other, or beside each other, have is
// not there twice, and the case of a name counts in them.
func TestNamesInOtherObjects(t *testing.T) {
	for _, body := range []string{
		`{"labels":{"labels":"labels","n":"n","N":"n"}}`,
		`{"state":{"n":[{"n":"n"},{"n":{"n":["n","n"]}}],"m":{"n":1e400,"m":null}}}`,
	} {
		handler, _ := newHandler(rest.Options{MaxBody: 1 << 20})
		if status, e := send(t, handler, "POST", "/sessions", asJSON, strings.NewReader(body)); status != 201 {
			t.Errorf("%s: %d %s", body, status, e.Message)
		}
	}
}

// Nothing is appended of a body that ends early, or of one that has no length and no end.
func TestBrokenBodies(t *testing.T) {
	handler, g := newHandler(rest.Options{MaxAppend: 1 << 20, MaxImport: 1 << 20})
	g.session(t, "s", 0)
	event := `{"type":"a"}` + "\n"
	for name, c := range map[string]struct {
		body   io.Reader
		status int
	}{
		"breaks off": {io.MultiReader(strings.NewReader(event), iotest.ErrReader(errors.New("connection reset"))), 400},
		"endless":    {io.MultiReader(strings.NewReader(event), endless{}), 413},
	} {
		for _, contentType := range []string{asJSON, asLines} {
			if status, e := send(t, handler, "POST", "/sessions/s/events", contentType, c.body); status != c.status {
				t.Errorf("%s: got %d %s, want %d", name, status, e.Message, c.status)
			}
		}
	}
	if s, _ := g.Head(t.Context(), "s"); s.Head != 1 {
		t.Errorf("%d events were written", s.Head-1)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A client receives only the id of an internal error. The log has its text.
func TestInternalErrorsTellNothing(t *testing.T) {
	for name, broken := range map[string]error{
		"any error":     errors.New("dial /home/ada/secret.db: no such file"),
		"internal kind": tapedeck.Errorf(tapedeck.Internal, "row 7 of /home/ada/secret.db: %w", errors.New("bad page")),
		"unknown kind":  &tapedeck.Error{Kind: "odd", Message: "secret"},
	} {
		var log bytes.Buffer
		handler, g := newHandler(rest.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		g.broken = broken
		status, e := send(t, handler, "POST", "/sessions", asJSON, strings.NewReader("{}"))
		if status != 500 || e.Kind != tapedeck.Internal || strings.Contains(e.Message+e.Hint, "secret") {
			t.Errorf("%s: %d %+v", name, status, e)
		}
		_, rest, _ := strings.Cut(e.Message, "(id ")
		id := strings.TrimSuffix(rest, ")")
		if !strings.HasPrefix(id, "req_") || !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "secret") {
			t.Errorf("%s: the log under id %q has %s", name, id, log.String())
		}
	}
}

// A breaking hub fails after its first page.
type breaking struct {
	*hub.Hub
	err error
}

func (b breaking) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(yield func(tapedeck.Page, error) bool) {
		for p, err := range b.Hub.Follow(ctx, session, o) {
			if yield(p, err) {
				yield(tapedeck.Page{}, b.err)
			}
			return
		}
	}
}

// A stream that breaks off ends without the reason. The server's log has it.
func TestBrokenStreamsTellNothing(t *testing.T) {
	for _, err := range []error{errors.New("disk /home/ada/secret.db"), tapedeck.Errorf(tapedeck.Internal, "row 7 of the secret")} {
		var log bytes.Buffer
		_, g := newHandler(rest.Options{})
		g.session(t, "s", 2)
		handler := rest.New(rest.Options{Sessions: breaking{g.Hub, err}, Verbs: g, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s := watch(t, handler, "s/stream")
		<-s.Done
		if got := s.Text(); got == "" || strings.Contains(got, "secret") || !strings.Contains(log.String(), "secret") {
			t.Errorf("%v: the client got %s\nand the log %s", err, got, &log)
		}
	}
}

// Each kind has its status, and the error keeps its sentence and hint.
func TestKindsHaveStatuses(t *testing.T) {
	for kind, status := range map[tapedeck.Kind]int{
		tapedeck.Invalid: 400, tapedeck.Unauthorized: 401, tapedeck.Forbidden: 403, tapedeck.NotFound: 404,
		tapedeck.Conflict: 409, tapedeck.Gone: 410, tapedeck.Precondition: 412, tapedeck.TooLarge: 413,
		tapedeck.Unsupported: 415, tapedeck.Limited: 429, tapedeck.Unavailable: 503,
	} {
		handler, g := newHandler(rest.Options{})
		g.broken = fmt.Errorf("wrapped: %w", tapedeck.Errorf(kind, "it is so").WithHint("do so"))
		got, e := send(t, handler, "POST", "/sessions", asJSON, strings.NewReader("{}"))
		if got != status || e.Kind != kind || e.Message != "it is so" || e.Hint != "do so" {
			t.Errorf("%s: %d %+v", kind, got, e)
		}
	}
}

// A request that is given up gets an answer that does not look like a success, and it
// is not logged as an internal error.
func TestRequestsGivenUpFail(t *testing.T) {
	var log bytes.Buffer
	handler, g := newHandler(rest.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	g.session(t, "s", 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{"/sessions/s", "/sessions/s/events", "/sessions/s/stream", "/sessions/s/snapshot", "/sessions"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1"+path, nil).WithContext(ctx))
		if w.Code != http.StatusServiceUnavailable || log.Len() > 0 {
			t.Errorf("%s: %d %s, logged %s", path, w.Code, w.Body, log.String())
		}
	}
}

// A filter that passes almost nothing does not make one request read a whole long
// session.
func TestFilteredPagesAreBounded(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	events := make([]tapedeck.Event, 50_000)
	for i := range events {
		events[i].Type = "acme.said"
	}
	events[45_000].Type = "acme.rare"
	g.append(t, "s", events...)
	for _, reverse := range []string{"", "&reverse=true"} {
		requests, found, from := 0, 0, ""
		for {
			var page struct {
				Events     []json.RawMessage
				Next, Head int64
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/events?type=acme.rare"+reverse+from, nil))
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
				t.Fatalf("%v in %s", err, w.Body)
			}
			requests, found = requests+1, found+len(page.Events)
			if reverse == "" && page.Next == page.Head || reverse != "" && page.Next == 0 {
				break
			}
			from = fmt.Sprintf("&from=%d", page.Next)
		}
		if requests != 3 || found != 1 {
			t.Errorf("%q: %d requests found %d events", reverse, requests, found)
		}
	}
}

// The pages of any size and direction are together the log.
func TestPagesAreTheLog(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	for i := range 30 { // some pages end because of their size
		g.append(t, "s", tapedeck.Event{Type: "acme.said", Data: json.RawMessage(fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", i*10_000)))})
	}
	for _, query := range []string{"limit=1", "limit=7", "limit=1000", "channel=agentState&limit=3", "channel=agentState"} {
		var forwards, backwards []int64
		for from := int64(0); ; {
			p := readPage(t, handler, fmt.Sprintf("%s&from=%d", query, from))
			forwards = append(forwards, p.offsets...)
			if from = p.Next; from == p.Head {
				break
			}
		}
		for from := "&reverse=true"; ; {
			p := readPage(t, handler, query+from)
			backwards = append(p.reversed(), backwards...)
			if p.Next == 0 {
				break
			}
			from = fmt.Sprintf("&reverse=true&from=%d", p.Next)
		}
		if want := fmt.Sprint(count(0, 31)); fmt.Sprint(forwards) != want || fmt.Sprint(backwards) != want {
			t.Errorf("%s:\nforwards  %v\nbackwards %v", query, forwards, backwards)
		}
	}
}

type page struct {
	Events     []struct{ Offset int64 }
	Next, Head int64
	offsets    []int64
}

func (p *page) reversed() []int64 {
	var list []int64
	for _, o := range p.offsets {
		list = append([]int64{o}, list...)
	}
	return list
}

func readPage(t *testing.T, handler http.Handler, query string) page {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/events?"+query, nil))
	var p page
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %v", query, w.Code, err)
	}
	if w.Body.Len() > 3<<20 {
		t.Errorf("%s: a page of %d bytes", query, w.Body.Len())
	}
	for _, e := range p.Events {
		p.offsets = append(p.offsets, e.Offset)
	}
	return p
}

// TestWrongValues: the error of a value with the wrong type names the value that is wrong
// and, for a range, the form that is meant.
func TestWrongValues(t *testing.T) {
	const ranges = `the event at offset 3 is the range {"from":3,"to":4}: the event at to is not in it`
	h := rest.New(rest.Options{Sessions: hub.New(memory.New(memory.Options{}))})
	for _, c := range []struct{ path, body, message, hint string }{
		{"/sessions/s/erase", `{"events":[3]}`, `each value in the member "events" must be an object, not a number`, ranges},
		{"/sessions/s/erase", `{"events":[[3,4]]}`, `each value in the member "events" must be an object, not an array`, ranges},
		{"/sessions/s/erase", `{"events":"3-4"}`, `the member "events" must be an array, not a string`, ranges},
		{"/sessions/s/erase", `{"events":[{"from":"3"}]}`, `the member "events.from" must be a whole number in range, not a string`, ""},
		{"/sessions", `{"labels":{"a":1}}`, `each value in the member "labels" must be a string, not a number`, ""},
		{"/sessions", `{"title":1}`, `the member "title" must be a string, not a number`, ""},
	} {
		if status, err := send(t, h, "POST", c.path, asJSON, strings.NewReader(c.body)); status != 400 || err.Message != c.message || err.Hint != c.hint {
			t.Errorf("%s: %d %q, hint %q", c.body, status, err.Message, err.Hint)
		}
	}
}
