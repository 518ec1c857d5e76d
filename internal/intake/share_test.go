package intake

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestShare: the messages of upgraded connections count as bodies do.
func TestShare(t *testing.T) {
	g := New(1 << 20)
	var s *Share
	open := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { s = ShareOf(r) })
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Upgrade", "websocket")
	if !Counts(r) {
		t.Fatal("an upgrade does not pass the gate")
	}
	g.Serve(httptest.NewRecorder(), r, open, nil)
	if err := s.Take(700 << 10); err != nil || g.Held() != 700<<10 {
		t.Fatalf("%v, and %d bytes count", err, g.Held())
	}
	if err := s.Take(100 << 10); tapedeck.KindOf(err) != tapedeck.Unavailable || g.Held() != 700<<10 {
		t.Errorf("above three quarters: %v, and %d bytes count", err, g.Held())
	}
	other := &Share{gate: g}
	if err := other.Take(small); err != nil {
		t.Errorf("a small message of another connection: %v", err)
	}
	if s.Give(700 << 10); g.Held() != small {
		t.Errorf("%d bytes count afterwards", g.Held())
	}
	r = httptest.NewRequest(http.MethodGet, "/", nil)
	if Counts(r) {
		t.Error("a request without a body passes the gate")
	}
	open.ServeHTTP(httptest.NewRecorder(), r)
	if err := s.Take(1 << 40); err != nil {
		t.Errorf("a request that is not upgraded: %v", err)
	}
}
