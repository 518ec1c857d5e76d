package rest_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck/protocol/rest"
)

// TestIncarnation: who comes back with an id or a cursor to a session that was deleted and
// created again is told so, in each way to say it, and gets no event. An offset alone is
// read from what the session is now.
func TestIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 3)
		first := watch(t, handler, "s/stream")
		synctest.Wait()
		last := first.LastID(t)
		if last != "3@1" || !strings.Contains(first.Text(), `{"next":4,"cursor":"4@1"}`) {
			t.Fatalf("the last id is %q: %s", last, first.Text())
		}
		first.Disconnect()
		ask := func(target, last string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/sessions/"+target, nil)
			if last != "" {
				r.Header.Set("Last-Event-ID", last)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}
		ways := [][2]string{
			{"s/stream", last}, {"s/stream?lastEventId=" + last, ""}, {"s/stream?fromOffset=4@1", ""}, {"s/events?from=2@1", ""},
			{"s/events?from=2@1&type=acme.never", ""}, {"s/stream?until=terminal", last},
			{"s/events?from=90@1", ""}, {"s/stream?fromOffset=90@1", ""},
		}
		if w := ask("s/events?from=2@1", ""); w.Code != http.StatusOK {
			t.Errorf("a cursor of the same session: %d %s", w.Code, w.Body)
		}
		if err := g.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		g.session(t, "s", 9)
		for _, way := range ways {
			w := ask(way[0], way[1])
			if w.Code != http.StatusGone || !strings.Contains(w.Body.String(), `"kind":"replaced"`) || !strings.Contains(w.Body.String(), `"hint"`) {
				t.Errorf("%v: %d %s", way, w.Code, w.Body)
			}
		}
		for _, c := range [][2]string{{"s/stream", "3@"}, {"s/stream", "3@x"}, {"s/stream", "3@0"}, {"s/stream", "@1"}, {"s/events?from=-1@1", ""}, {"s/events?from=1@1@1", ""}} {
			if w := ask(c[0], c[1]); w.Code != http.StatusBadRequest {
				t.Errorf("%v: %d %s", c, w.Code, w.Body)
			}
		}
		again := watch(t, handler, "s/stream", "Last-Event-ID", "3")
		synctest.Wait()
		if got := again.LastID(t); got != "9@2" {
			t.Errorf("an offset alone is read up to %q", got)
		}
		again.Disconnect()
	})
}

// TestIncarnationClosed: also a session that is closed and has no more events answers a
// cursor of another history with that, not with 204.
func TestIncarnationClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		for range 2 {
			g.session(t, "s", 1)
			if err := g.Close(t.Context(), "s", ""); err != nil {
				t.Fatal(err)
			}
			s := watch(t, handler, "s/stream", "Last-Event-ID", "2@1")
			<-s.Done
			if want := []int{http.StatusNoContent, http.StatusGone}; !slices.Contains(want, s.Status) {
				t.Errorf("%d", s.Status)
			}
			if head, _ := g.Head(t.Context(), "s"); (s.Status == http.StatusGone) != (head.Gen != 1) {
				t.Errorf("%d in the incarnation %d", s.Status, head.Gen)
			}
			if err := g.Delete(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
