package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/rest"
)

// Users join, move and leave by events of the channel presence, which can be read
// by themselves.
func TestPresenceIsAChannel(t *testing.T) {
	door, g := newDoor(rest.Options{})
	g.session(t, "s", 0)
	for _, typ := range []string{"joined", "moved", "left"} {
		body := `{"type":"presence.` + typ + `","actor":"user:ada","data":{"user":"ada","cursor":{"offset":1},"joinedAt":"2026-01-05T12:00:00Z"}}`
		r := httptest.NewRequest(http.MethodPost, "/api/v1/sessions/s/events", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if door.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", typ, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/events?channel=presence&from=1", nil))
	for _, want := range []string{`"presence.joined","channel":"presence"`, `"presence.moved"`, `"presence.left"`, `"joinedAt":"2026-01-05T12:00:00Z"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("there is no %s in %s", want, w.Body)
		}
	}
}
