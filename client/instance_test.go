package client_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// instance serves at addr as the process of that name, and counts what else it
// is asked.
func instance(t *testing.T, addr, name string, asked *atomic.Int64) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(client.InstanceHeader, name)
		if r.URL.Path != "/healthz" {
			asked.Add(1)
			_, _ = w.Write([]byte(`{}`))
		}
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// TestAnotherServerAtThePort: between two requests of one client its server is
// replaced. The second request does not reach the new one, on any connection.
func TestAnotherServerAtThePort(t *testing.T) {
	var first, second atomic.Int64
	s := instance(t, "127.0.0.1:0", "srv_1", &first)
	c, err := client.NewFor(s.URL, "srv_1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Session(t.Context(), "a"); err != nil || first.Load() != 1 {
		t.Fatalf("%v, asked %d times", err, first.Load())
	}
	s.CloseClientConnections()
	s.Close()
	foreign := instance(t, s.Listener.Addr().String(), "srv_2", &second)
	for range 3 {
		if err := c.Delete(t.Context(), "a"); tapedeck.KindOf(err) != tapedeck.Unavailable {
			t.Errorf("got %v, want that another server is there", err)
		}
	}
	if n := second.Load(); n != 0 {
		t.Errorf("the other server was asked %d times", n)
	}
	c.OnRefused(func(context.Context) (*client.Client, error) { return client.NewFor(foreign.URL, "srv_2") })
	if err := c.Delete(t.Context(), "a"); err != nil || second.Load() != 1 {
		t.Errorf("told of the other server: %v, asked %d times", err, second.Load())
	}
}

// TestPingOfAnotherProgram: 200 for /healthz is not enough.
func TestPingOfAnotherProgram(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("ping: %v", err)
	}
	if _, err := c.Session(t.Context(), "a"); err == nil {
		t.Error("an empty answer was taken for a session")
	}
}

// TestPingOfAWrongURL: the error says what is wrong with the URL.
func TestPingOfAWrongURL(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	healthy := http.NewServeMux()
	healthy.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(client.InstanceHeader, "srv_1") })
	for name, c := range map[string]struct {
		handler    http.Handler
		tls        bool
		scheme     string // instead of that of the server
		path       string
		kind       tapedeck.Kind
		want, hint string
	}{
		"a server":                  {handler: healthy},
		"HTTPS for HTTP":            {handler: healthy, scheme: "https", kind: tapedeck.Unavailable, want: "speaks HTTP, not HTTPS", hint: "http://"},
		"HTTP for HTTPS":            {handler: healthy, tls: true, scheme: "http", kind: tapedeck.Unavailable, want: "there is no Tapedeck server at http://", hint: "wants HTTPS"},
		"a certificate of nobody":   {handler: healthy, tls: true, kind: tapedeck.Unavailable, want: "is not accepted", hint: "nothing was sent"},
		"a path":                    {handler: healthy, path: "/api/v1", kind: tapedeck.Unavailable, want: "/api/v1", hint: "leave out the path"},
		"a page":                    {handler: answer(200, "<html>hello</html>"), kind: tapedeck.Unavailable, want: "there is no Tapedeck server", hint: "the status 200"},
		"no page":                   {handler: answer(404, "not found"), kind: tapedeck.Unavailable, want: "there is no Tapedeck server", hint: "the status 404"},
		"a proxy without a server":  {handler: answer(502, "<html>bad</html>"), kind: tapedeck.Unavailable, want: "the server answered 502 Bad Gateway"},
		"a proxy that wants a name": {handler: answer(401, "who?"), kind: tapedeck.Unauthorized, want: "who?"},
		"an end without an answer": {
			handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
			kind:    tapedeck.Unavailable, want: "without an answer", hint: "HTTPS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(c.handler)
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			if c.tls {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			scheme, host, _ := strings.Cut(s.URL, "://")
			to, err := client.New(cmp.Or(c.scheme, scheme) + "://" + host + c.path)
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			err = to.Ping(t.Context())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var known *tapedeck.Error
			if !errors.As(err, &known) || known.Kind != c.kind || !strings.Contains(err.Error(), c.want) || !strings.Contains(known.Hint, c.hint) || strings.Contains(err.Error(), "<") {
				t.Errorf("the error is %+v", err)
			}
		})
	}
}

// TestBusy: a server that takes no connection is not taken for another one, or for one that
// does not answer, and nothing is sent to it.
func TestBusy(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("it was asked for %s", r.URL.Path)
		}
		problem.Write(w, r, tapedeck.Errorf(tapedeck.Unavailable, "it has too many").WithHint("later"), slog.Default())
	}))
	defer s.Close()
	c, err := client.NewFor(s.URL, "srv_1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err = c.Delete(t.Context(), "a"); !client.Busy(err) || client.Silent(err) || !strings.Contains(err.Error(), "it has too many") {
		t.Errorf("%v", err)
	}
}
