package aisdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/decktest"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/aisdk"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// Pages that write into a chat at once are decided one after the other: one begins its run,
// and the others are told by which run the chat is busy. Messages without a run are all stored.
func TestPagesAtOnce(t *testing.T) {
	const pages = 4
	w := newWorld(t)
	for n := range 20 {
		begun, fresh, plain := fmt.Sprint("begun_", n), fmt.Sprint("fresh_", n), fmt.Sprint("plain_", n)
		if refused := w.atOnce(1, begun, ""); len(refused) > 0 {
			t.Fatal(refused)
		}
		for _, chat := range []string{begun, fresh} {
			refused := w.atOnce(pages, chat, `,"run":"run_N"`)
			if len(refused) != pages-1 {
				t.Fatalf("%s: %d of %d pages are refused: %q", chat, len(refused), pages, refused)
			}
			for _, text := range refused {
				if !strings.HasPrefix(text, "409 chat "+chat+" is busy with run_") {
					t.Fatalf("%s: a page is refused with %q", chat, text)
				}
			}
		}
		if refused := w.atOnce(pages, plain, ""); len(refused) > 0 {
			t.Fatalf("%s: messages are refused: %q", plain, refused)
		}
		if got := len(w.loaded(plain)); got != pages {
			t.Fatalf("%s: the chat has %d messages of %d", plain, got, pages)
		}
	}
}

// A request that edits a message, or wants another answer to it, and that is refused, leaves
// the chat as it was.
func TestEditsOrNothing(t *testing.T) {
	w := newWorld(t)
	const (
		first = `{"id":"u1","role":"user","parts":[{"type":"text","text":"Hi"}]}`
		edit  = `{"id":"u1","role":"user","parts":[{"type":"text","text":"Hi there"}]}`
	)
	for _, body := range []string{`{"id":"c","messages":[` + first + `]}`, `{"id":"c","messages":[` + first + `,{"id":"u2","role":"user","parts":[{"type":"text","text":"And?"}]}]}`} {
		w.run("/aisdk/steps", body)
	}
	if got := w.send("/aisdk/web/c/messages", `{"messages":[{"id":"u3","role":"user","parts":[{"type":"text","text":"Well?"}]}],"run":"run_1"}`); got.Code != http.StatusOK {
		t.Fatal(got.Body)
	}
	_, err := w.Session("c").Append(t.Context(), tapedeck.Event{Type: tapedeck.RunFinished, Invocation: "run_1", Data: json.RawMessage(`{"threadId":"main","runId":"run_1"}`)})
	if err != nil {
		t.Fatal(err)
	}
	before, head := w.loaded("c"), w.headOf("c")
	for path, bodies := range map[string][]string{
		"/aisdk/steps": {
			`{"id":"c","messages":[` + edit + `],"config":{"bad":true}}`,
			`{"id":"c","messages":[` + first + `],"trigger":"regenerate-message","config":{"bad":true}}`,
			`{"id":"c","messages":[{"id":"u1","role":"user","parts":[{"type":"file","url":""}]}]}`,
		},
		"/aisdk/web/c/messages": {
			`{"messages":[` + edit + `],"run":"run_2","leaseMs":1}`,
			`{"messages":[` + edit + `],"run":"u2"}`,
			`{"messages":[` + edit + `],"run":"u1"}`,
			`{"messages":[` + edit + `],"run":"a b"}`,
			`{"messages":[` + first + `,{"id":"u9","role":"user","parts":[{"type":"text","text":"Lost?"}]}],"run":"run_1"}`, // it began before, without u9
			`{"messages":[` + edit + `],"run":"run_1"}`,
			`{"messages":[` + first + `],"run":"run_1","trigger":"regenerate-message"}`,
			`{"messages":[{"id":"run_1","role":"user","parts":[{"type":"text","text":"Who?"}]}]}`,
		},
	} {
		for _, body := range bodies {
			if got := w.send(path, body); got.Code != http.StatusBadRequest && got.Code != http.StatusConflict {
				t.Errorf("%s: %d %s", body, got.Code, got.Body)
			}
			if now := w.headOf("c"); now != head || !reflect.DeepEqual(w.loaded("c"), before) {
				t.Errorf("%s: the head was %d and is %d", body, head, now)
				head, before = now, w.loaded("c")
			}
		}
	}
	for range 2 { // the second one is a repetition
		if got := w.send("/aisdk/web/c/messages", `{"messages":[`+edit+`],"run":"run_2","trigger":"regenerate-message"}`); got.Code != http.StatusOK {
			t.Error(got.Body)
		}
		if got := w.headOf("c"); got != head+3 { // the rewind, the message and the beginning of the run
			t.Errorf("the edit appends %d events", got-head)
		}
	}
}

// A rival acts once, just before an edit is stored.
type rival struct {
	aisdk.Verbs
	act func()
}

func (r *rival) wins() {
	if f := r.act; f != nil {
		r.act = nil
		f()
	}
}

func (r *rival) AppendAfter(ctx context.Context, back api.Rewind, a tapedeck.Append) (tapedeck.Appended, error) {
	r.wins()
	return r.Verbs.AppendAfter(ctx, back, a)
}

func (r *rival) Start(ctx context.Context, t api.Task) (api.Started, error) {
	if t.Rewind != nil {
		r.wins()
	}
	return r.Verbs.Start(ctx, t)
}

// What others add to a chat between the look of an edit at it and the edit is not reverted: the
// edit is refused. What they add to another thread does not matter.
func TestEditsWhatItHasSeen(t *testing.T) {
	for _, body := range []string{`"id":"c","messages":[%s],"config":null`, `"messages":[%s],"run":"run_1"`, `"messages":[%s]`} {
		for _, thread := range []string{tapedeck.MainThread, "other"} {
			ctx := t.Context()
			h := hub.New(memory.New(memory.Options{}))
			views := projection.New(projection.Options{Store: h})
			e := engine.New(engine.Options{Store: h, Views: views, Agents: []engine.Agent{{Agent: tapedeck.Agent{Name: "bot"}, Runner: tapedeck.RunnerFunc(
				func(context.Context, tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
					return func(func(tapedeck.Event, error) bool) {}
				})}}})
			other := &rival{Verbs: e}
			w := &world{World: &decktest.World{TB: t, Handler: aisdk.New(aisdk.Options{Sessions: h, Verbs: other, Views: views})}}
			path := "/aisdk/web/c/messages"
			if strings.Contains(body, "config") {
				path = "/aisdk/bot"
			}
			const first, edit = `{"id":"u1","role":"user","parts":[{"type":"text","text":"Hi"}]}`, `{"id":"u1","role":"user","parts":[{"type":"text","text":"Hi there"}]}`
			if got := w.send("/aisdk/web/c/messages", `{"messages":[`+first+`]}`); got.Code != http.StatusOK {
				t.Fatal(got.Body)
			}
			other.act = func() {
				said := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("u2", payload.RoleUser, "And?")})
				said.Thread = thread
				if _, err := e.Append(ctx, tapedeck.Append{Session: "c", Events: []tapedeck.Event{said}}); err != nil {
					t.Error(err)
				}
			}
			got := w.send(path, "{"+fmt.Sprintf(body, edit)+"}")
			now, err := views.Snapshot(ctx, "c", view.Query{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			var has []string
			for _, m := range now.Messages {
				has = append(has, m.ID+" "+m.Text)
			}
			slices.Sort(has)
			code, want := http.StatusConflict, "u1 Hi, u2 And?"
			if thread != tapedeck.MainThread {
				code, want = http.StatusOK, "u1 Hi there, u2 And?"
			}
			if got.Code != code || strings.Join(has, ", ") != want {
				t.Errorf("%s, something is added to %s: %d %s; the session has %q", body, thread, got.Code, got.Body, has)
			}
			if err := e.Shutdown(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		}
	}
}

func (w *world) headOf(chat string) int64 {
	w.Helper()
	s, err := w.Session(chat).Info(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return s.Head
}

// Of an edit that arrives several times at once, all have the same answer, and one is stored.
func TestOneEditAtOnce(t *testing.T) {
	w := newWorld(t)
	for n := range 40 {
		chat := fmt.Sprint("twice_", n)
		send := func(text, more string) *httptest.ResponseRecorder {
			return w.send("/aisdk/web/"+chat+"/messages", fmt.Sprintf(`{"messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":%q}]}]%s}`, text, more))
		}
		send("Hi", "")
		var all sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 4)
		for i := range answers {
			all.Go(func() { answers[i] = send("Hi there", `,"run":"run_1"`) })
		}
		all.Wait()
		for _, a := range answers {
			if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), `"message":"run_1"`) {
				t.Fatalf("%s: %d %s", chat, a.Code, a.Body)
			}
		}
		if got := w.headOf(chat); got != 5 { // the session, the message, the rewind, the message, the run
			t.Fatalf("%s: the head is %d", chat, got)
		}
	}
}

// atOnce sends a message of each page at once, with more members of the body (N is the number of the page), and returns the refusals.
func (w *world) atOnce(pages int, chat, more string) (refused []string) {
	var all sync.WaitGroup
	answers := make([]*httptest.ResponseRecorder, pages)
	for i := range pages {
		body := strings.ReplaceAll(`{"messages":[{"id":"m_N","role":"user","parts":[{"type":"text","text":"Hi"}]}]`+more+"}", "N", strconv.Itoa(i))
		all.Go(func() { answers[i] = w.send("/aisdk/web/"+chat+"/messages", body) })
	}
	all.Wait()
	for _, a := range answers {
		if a.Code != http.StatusOK {
			refused = append(refused, fmt.Sprint(a.Code, " ", a.Body))
		}
	}
	return refused
}

func (w *world) send(path, body string) *httptest.ResponseRecorder {
	got := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(w.Context(), "POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w.Handler.ServeHTTP(got, r)
	return got
}
