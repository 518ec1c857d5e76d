package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck/protocol/rest"
)

func post(t *testing.T, handler http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/api/v1/sessions/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// Events of the channel presence can be appended like others, and read alone.
func TestPresenceIsAChannel(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	for _, typ := range []string{"joined", "moved", "left"} {
		body := `{"type":"presence.` + typ + `","actor":"user:ada","data":{"user":"ada","cursor":{"offset":1},"joinedAt":"2026-01-05T12:00:00Z"}}`
		if w := post(t, handler, "s/events", body); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", typ, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/events?channel=presence&from=1", nil))
	for _, want := range []string{`"presence.joined","channel":"presence"`, `"presence.moved"`, `"presence.left"`, `"joinedAt":"2026-01-05T12:00:00Z"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("there is no %s in %s", want, w.Body)
		}
	}
}

// A change of presence is sent at once to the streams that ask for it, as a frame without
// an id. Other streams and the log do not have it.
func TestPresenceIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 1)
		post(t, handler, "s/presence", `{"action":"join","user":"ada"}`)
		s, other := watch(t, handler, "s/stream?presence=live"), watch(t, handler, "s/stream")
		synctest.Wait()
		post(t, handler, "s/presence", `{"action":"move","user":"bob","cursor":{"offset":1}}`)
		synctest.Wait()
		g.say(t, "s", 1)
		synctest.Wait()
		post(t, handler, "s/presence", `{"action":"leave","user":"ada"}`)
		synctest.Wait()
		const at = `2000-01-01T00:00:00.000Z`
		want := `event: caught-up
data: {"next":2,"cursor":"2@1"}

event: presence
data: {"type":"presence.joined","channel":"presence","timestamp":"` + at + `","actor":"user:ada","data":{"user":"ada","joinedAt":"` + at + `","lastSeen":"` + at + `"}}

event: presence
data: {"type":"presence.joined","channel":"presence","timestamp":"` + at + `","actor":"user:bob","data":{"user":"bob","cursor":{"offset":1},"joinedAt":"` + at + `","lastSeen":"` + at + `"}}

id: 2@1
data: `
		if _, got, _ := strings.Cut(s.Text(), "id: 1@1\n"); !strings.Contains(got, want) || !strings.HasSuffix(got, `"data":{"user":"ada","joinedAt":"`+at+`","lastSeen":"`+at+`"}}`+"\n\n") || strings.Count(got, "presence.left") != 1 {
			t.Errorf("got %s", got)
		}
		if strings.Contains(other.Text(), "presence") {
			t.Errorf("who did not ask got %s", other.Text())
		}
		if head, err := g.Head(t.Context(), "s"); err != nil || head.Head != 3 {
			t.Errorf("the log is at %d, %v", head.Head, err)
		}
		s.Disconnect()
		other.Disconnect()
		g.rooms.Clear("s")
	})
}

func TestPresenceIsRefused(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	for body, want := range map[string]int{
		`{"action":"join","user":"ada"}`:          http.StatusOK,
		`{"action":"join"}`:                       http.StatusBadRequest,
		`{"action":"dance","user":"ada"}`:         http.StatusBadRequest,
		`{"action":"join","user":"a/b"}`:          http.StatusBadRequest,
		`{"action":"join","user":"ada","mood":1}`: http.StatusBadRequest,
		`{"action":"join","user":"ada","cursor":"` + strings.Repeat("x", 5000) + `"}`: http.StatusRequestEntityTooLarge,
		`[]`: http.StatusBadRequest,
	} {
		if w := post(t, handler, "s/presence", body); w.Code != want {
			t.Errorf("%.60s: %d %s", body, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/nothing/presence", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("of a session that is not there: %d", w.Code)
	}
	g.rooms.Clear("s")
}
