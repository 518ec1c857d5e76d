package deck_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/gate"
	"github.com/tapedeck/tapedeck/access/tokens"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

// BenchmarkAccess appends one event with a request: without access control, and with the
// token of the session's owner from a file.
func BenchmarkAccess(b *testing.B) {
	path := b.TempDir() + "/auth.toml"
	_, token, err := tokens.Create(path, tokens.Token{Subject: "ada", Role: access.User})
	if err != nil {
		b.Fatal(err)
	}
	set, err := tokens.Open(tokens.Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	for name, control := range map[string]*deck.Access{"open": nil, "guarded": {Verifiers: []gate.Verifier{set}}} {
		b.Run(name, func(b *testing.B) {
			d, err := deck.Open(b.Context(), "", deck.Options{InMemory: true, Access: control})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close(b.Context())
			if _, err := d.Create(b.Context(), api.NewSession{ID: "s", Owner: "ada"}); err != nil {
				b.Fatal(err)
			}
			h := d.Handler()
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/api/v1/sessions/s/events", strings.NewReader(`{"type":"message.added","data":{"message":{"id":"`+tapedeck.NewID("m_")+`","role":"user","content":"x"}}}`))
				r.Host = "localhost"
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+token)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
