package deck_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
)

// do sends a request and returns the status and the body.
func do(d *deck.Deck, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:4747"
	r.Header.Set("Content-Type", "application/json")
	d.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestSubscriptions: a deck calls webhooks at allowed addresses, for what happened while
// no deck had subscriptions, too. Its keys are in the folder and can be replaced.
func TestSubscriptions(t *testing.T) {
	called := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called <- r.Header.Get("Webhook-Signature")
		_, _ = w.Write([]byte(`{"done":true}`))
	}))
	defer receiver.Close()
	const root = "/v1/stream/__ds"
	body := `{"type":"webhook","pattern":"a/*","webhook":{"url":"` + receiver.URL + `"}}`
	dir := t.TempDir()

	d := openAt(t, dir, deck.Options{PublicURL: "https://deck.example"})
	if code, answer := do(d, "PUT", root+"/subscriptions/s", body); code != 400 || !strings.Contains(answer, "WEBHOOK_URL_REJECTED") {
		t.Errorf("a private address: %d %s", code, answer)
	}
	_ = d.Close(context.Background())

	loopback := deck.Options{AllowWebhooks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	d = openAt(t, dir, loopback)
	if code, answer := do(d, "PUT", root+"/subscriptions/s", body); code != 201 || !strings.Contains(answer, "http://127.0.0.1:4747/v1/stream/__ds/jwks.json") {
		t.Fatalf("%d %s", code, answer)
	}
	_, keys := do(d, "GET", root+"/jwks.json", "")
	_ = d.Close(context.Background())
	info, err := os.Stat(filepath.Join(dir, subscription.KeyFile))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the keys have the mode %v, %v", info.Mode(), err)
	}

	d = openAt(t, dir, deck.Options{NoSubscriptions: true})
	if code, _ := do(d, "PUT", root+"/subscriptions/x", body); code != 404 {
		t.Errorf("without subscriptions: %d", code)
	}
	if code, answer := do(d, "PUT", "/v1/stream/a/1", `{"n":1}`); code != 201 {
		t.Fatalf("%d %s", code, answer)
	}
	_ = d.Close(context.Background())

	loopback.RotateWebhookKey = true
	d = openAt(t, dir, loopback)
	signature := <-called
	_, both := do(d, "GET", root+"/jwks.json", "")
	kid := strings.Split(strings.TrimSuffix(strings.SplitAfter(signature, "kid=")[1], ",ed25519="), ",")[0]
	if strings.Count(both, `"kid"`) != 2 || strings.Contains(keys, kid) || !strings.Contains(both, kid) {
		t.Errorf("signed with %s; published before: %s, now: %s", kid, keys, both)
	}
}

func TestPublicURLOption(t *testing.T) {
	if _, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, PublicURL: "deck.example"}); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("got %v", err)
	}
}
