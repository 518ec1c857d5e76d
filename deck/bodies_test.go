package deck_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck/deck"
)

// TestBodiesOfAUser: the memory that the bodies of a user take counts for that user, so the
// bodies of others are served.
func TestBodiesOfAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openGuarded(t, deck.Options{BodyBudget: 1 << 20})
		session := g.session("")
		in, out := io.Pipe()
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/sessions/"+session+"/events", in)
			r.Host = "127.0.0.1"
			r.Header.Set("Authorization", "Bearer owner")
			r.Header.Set("Content-Type", "application/json")
			g.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}()
		if _, err := io.WriteString(out, strings.Repeat(" ", 760<<10)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // all of it is counted
		large := `{"type":"message.added","data":{"message":{"id":"m","role":"user","content":"` + strings.Repeat("x", 100<<10) + `"}}}`
		if code, answer := g.send("POST", "/api/v1/sessions/"+session+"/events", "owner", large); code != http.StatusServiceUnavailable {
			t.Errorf("a second large body of the user: %d %.200s", code, answer)
		}
		if code, answer := g.send("POST", "/api/v1/sessions/"+session+"/events", "writer", large); code != http.StatusOK {
			t.Errorf("a large body of another user: %d %.200s", code, answer)
		}
		_ = out.Close()
		synctest.Wait()
	})
}
