package intake

import (
	"net/http"
	"net/http/httptest"
	"slices"
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
	other := &Share{from: account{g, "bob"}}
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

// TestSenders: a sender who holds all that it can get leaves space for the bodies of others,
// large and small.
func TestSenders(t *testing.T) {
	for _, size := range []int64{1 << 20, small} {
		g := New(0)
		take := func(sender string, n int64) bool {
			s := &Share{from: account{g, sender}}
			return s.Take(n) == nil
		}
		for take("eve", size) {
		}
		if held := g.Held(); held < DefaultBudget/4*3-size || held > DefaultBudget/16*15 {
			t.Errorf("in bodies of %d bytes, one sender holds %d bytes of %d", size, held, DefaultBudget)
		}
		for _, other := range []string{"ada", "bob"} {
			if !take(other, 2<<20) || !take(other, small) {
				t.Errorf("after eve's bodies of %d bytes there is no space for %s", size, other)
			}
		}
	}
}

// TestAccountsAreForgotten: a sender who holds nothing takes no memory.
func TestAccountsAreForgotten(t *testing.T) {
	g := New(0)
	var all []*Share
	for _, sender := range []string{"ada", "bob", "ada"} {
		s := &Share{from: account{g, sender}}
		if err := s.Take(10); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for left, s := range slices.Backward(all) {
		if s.Give(10); len(g.by) != min(left, 2) {
			t.Errorf("%d hold something, and the gate has %v", left, g.by)
		}
	}
}
