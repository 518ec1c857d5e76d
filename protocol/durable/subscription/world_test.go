package subscription

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A world is a store with a dispatcher, in a bubble, and a receiver of webhooks.
type world struct {
	t     *testing.T
	store *memory.Store
	hub   *hub.Hub
	d     *Dispatcher
	stop  func()      // ends the dispatcher and waits for it
	full  atomic.Bool // commits of the store fail

	mu       sync.Mutex
	receive  func(n *notification) (status int, answer string)
	received []*notification
	times    []time.Time
}

// bubble runs a test with a world.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.store = memory.New(memory.Options{FailCommit: func() error {
			if w.full.Load() {
				return errors.New("disk full")
			}
			return nil
		}})
		w.hub = hub.New(w.store)
		w.start()
		test(w)
		w.stop()
	})
}

// start starts a dispatcher on the store, as a new process does.
func (w *world) start() {
	w.d = New(Options{Log: w.hub, Store: w.store.Subscriptions(), Transport: w})
	w.hub.Observe(w.d.Observer())
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() { w.d.Run(ctx); close(ended) }()
	w.stop = func() { cancel(); <-ended }
	synctest.Wait()
}

// restart is start after the end of the dispatcher. The one before still observes the
// store, but does nothing.
func (w *world) restart() { w.stop(); w.start() }

// RoundTrip is the network: every request reaches the receiver.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	b, _ := io.ReadAll(r.Body)
	var n notification
	if err := json.Unmarshal(b, &n); err != nil {
		w.t.Errorf("the webhook is %s: %v", b, err)
	}
	w.verify(r.Header.Get("Webhook-Signature"), b)
	w.mu.Lock()
	w.received, w.times = append(w.received, &n), append(w.times, time.Now())
	receive := w.receive
	w.mu.Unlock()
	status, answer := 200, `{"done":true}`
	if receive != nil {
		status, answer = receive(&n)
	}
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	if status == 0 {
		return nil, errors.New(answer)
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

var signatureForm = regexp.MustCompile(`^t=(\d+),kid=(ds_[A-Za-z0-9_-]{43}),ed25519=([A-Za-z0-9_-]+)$`)

// verify checks the signature of a webhook with the published keys.
func (w *world) verify(signature string, body []byte) {
	m := signatureForm.FindStringSubmatch(signature)
	if m == nil {
		w.t.Errorf("the signature is %q", signature)
		return
	}
	var keys struct{ Keys []jwk }
	w.get("/jwks.json", &keys)
	for _, k := range keys.Keys {
		if k.ID == m[2] {
			public, _ := base64.RawURLEncoding.DecodeString(k.X)
			sum, _ := base64.RawURLEncoding.DecodeString(m[3])
			if !ed25519.Verify(public, append([]byte(m[1]+"."), body...), sum) {
				w.t.Error("the signature is wrong")
			}
			return
		}
	}
	w.t.Errorf("no published key has the id %s", m[2])
}

// settle waits until everything that was committed is looked at and delivered.
func (w *world) settle() {
	time.Sleep(2 * rest)
	synctest.Wait()
}

// answers sets what the receiver answers from now on.
func (w *world) answers(receive func(n *notification) (int, string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receive = receive
}

// taken returns the webhooks that were received since the last call.
func (w *world) taken() []*notification {
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.received
	w.received, w.times = nil, nil
	return out
}

// told returns the streams that the webhooks since the last call told of, as
// "path acked-tail".
func (w *world) told() string {
	var out []string
	for _, n := range w.taken() {
		for _, s := range n.Streams {
			out = append(out, fmt.Sprintf("%s %s-%s", s.Path, short(s.Acked), short(s.Tail)))
		}
	}
	return strings.Join(out, ", ")
}

// short returns the number of records in an offset.
func short(offset string) string {
	_, n, ok := parsePosition(offset)
	if !ok {
		return "?" + offset
	}
	return fmt.Sprint(n)
}

// call sends a request and returns the status and the body.
func (w *world) call(method, path, token, body string) (int, string) {
	r := httptest.NewRequest(method, root+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	rec := httptest.NewRecorder()
	w.d.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

// expect sends a request and compares the status. It decodes the answer.
func (w *world) expect(want int, method, path, token, body string, into any) {
	w.t.Helper()
	code, answer := w.call(method, path, token, body)
	if code != want {
		w.t.Fatalf("%s %s %s\ngot %d %s, want %d", method, path, body, code, answer, want)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(answer), into); err != nil {
			w.t.Fatalf("%s: %v", answer, err)
		}
	}
}

func (w *world) get(path string, into any) { w.expect(200, "GET", path, "", "", into) }

// refused sends a request that must fail with a code.
func (w *world) refused(code, method, path, token, body string) {
	w.t.Helper()
	var answer struct{ Error failure }
	status, text := w.call(method, path, token, body)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Error.Code != code || answer.Error.Message == "" || status != statuses[code] {
		w.t.Errorf("%s %s %.200s\ngot %d %s, want %s", method, path, body, status, text, code)
	}
}

// hook creates a subscription with a webhook.
func (w *world) hook(id, members string) {
	w.t.Helper()
	w.expect(201, "PUT", "/subscriptions/"+id, "", `{"type":"webhook","webhook":{"url":"https://hook.example/x"},`+members+`}`, nil)
}

func (w *world) subscription(id string) described {
	w.t.Helper()
	var s described
	w.get("/subscriptions/"+id, &s)
	return s
}

// stream creates a stream with messages, in one commit: of two commits, a wake may tell
// only the first.
func (w *world) stream(path string, messages ...string) {
	w.t.Helper()
	made, err := w.hub.Create(w.t.Context(), tapedeck.Spec{
		ID: tapedeck.StreamPrefix + path, Kind: tapedeck.KindStream, ContentType: "application/json", Chunks: chunks(messages),
	})
	if err != nil || !made.New {
		w.t.Fatal(made, err)
	}
}

// say appends messages to a stream, in one commit.
func (w *world) say(path string, messages ...string) {
	w.t.Helper()
	if _, err := w.hub.Append(w.t.Context(), tapedeck.Append{Session: tapedeck.StreamPrefix + path, Chunks: chunks(messages)}); err != nil {
		w.t.Fatal(err)
	}
}

func chunks(messages []string) [][]byte {
	var out [][]byte
	for _, m := range messages {
		out = append(out, []byte(m))
	}
	return out
}

// session appends events to a session, which it creates if necessary.
func (w *world) session(id string, events ...tapedeck.Event) {
	w.t.Helper()
	_, err := w.hub.Create(w.t.Context(), tapedeck.Spec{ID: id, Kind: tapedeck.KindSession, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated}}})
	for i := range events {
		if err == nil {
			_, err = w.hub.Append(w.t.Context(), tapedeck.Append{Session: id, Events: events[i : i+1]})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(id string) {
	w.t.Helper()
	if err := w.hub.Delete(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
}

// read returns the messages of a stream.
func (w *world) read(path string) string {
	w.t.Helper()
	w.settle()
	p, err := w.hub.Read(w.t.Context(), tapedeck.StreamPrefix+path, tapedeck.Range{})
	if err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	for _, r := range p.Records {
		b.Write(r.Data)
		b.WriteByte('\n')
	}
	return b.String()
}

// is compares.
func is[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// done is the report that ends a wake, with acknowledgements such as "path 3".
func done(wake string, generation int64, acks ...string) string {
	r := report{Wake: wake, Generation: generation, Done: true}
	for _, a := range acks {
		var n int64
		path, at, _ := strings.Cut(a, " ")
		fmt.Sscan(at, &n)
		r.Acks = append(r.Acks, ack{Stream: path, Offset: position(n)})
	}
	b, _ := json.Marshal(r)
	return string(b)
}

func contextOf(t *testing.T) (context.Context, func()) { return context.WithCancel(t.Context()) }

// A brokenStore fails some times.
type brokenStore struct {
	Store
	fails int
}

func (s *brokenStore) All(ctx context.Context) (map[string][]byte, error) {
	if s.fails--; s.fails >= 0 {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "not now")
	}
	return s.Store.All(ctx)
}
