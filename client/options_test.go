package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
)

// counting is a transport that counts requests.
type counting struct{ n int }

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	return http.DefaultTransport.RoundTrip(r)
}

// TestOptions: the client asks for the headers of each request, and sends it through
// the given HTTP client.
func TestOptions(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization")+" "+r.Header.Get("X-Other"))
		_, _ = w.Write([]byte(`{"agents":[]}`))
	}))
	defer server.Close()
	transport, tokens := &counting{}, []string{"a", "b"}
	token := func(context.Context) (http.Header, error) {
		if len(tokens) == 0 {
			return nil, errors.New("no token")
		}
		h := http.Header{"Authorization": {"Bearer " + tokens[0]}}
		tokens = tokens[1:]
		return h, nil
	}
	other := func(context.Context) (http.Header, error) { return http.Header{"X-Other": {"x"}}, nil }
	c, err := client.New(server.URL, client.WithHTTPClient(&http.Client{Transport: transport}), client.WithHeader(token), client.WithHeader(other))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Bearer a x", "Bearer b x"} {
		if _, err := c.Agents(t.Context()); err != nil || got[len(got)-1] != want {
			t.Errorf("the headers are %q, want %q; %v", got, want, err)
		}
	}
	if _, err := c.Agents(t.Context()); tapedeck.KindOf(err) != tapedeck.Unauthorized || !strings.HasSuffix(err.Error(), ": no token") {
		t.Errorf("without a token: %v", err)
	}
	if transport.n != 2 || len(got) != 2 {
		t.Errorf("%d requests were sent", transport.n)
	}
}

// TestActor: the actor of a verb is that of its event.
func TestActor(t *testing.T) {
	h := open(t)
	if _, err := h.Create(t.Context(), api.NewSession{ID: "s", Actor: "user:ada"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Rename(t.Context(), api.Rename{Session: "s", Title: new("A title"), Actor: "user:bob"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Clear(t.Context(), api.Clear{Session: "s", Actor: "user:eve"}); err != nil {
		t.Fatal(err)
	}
	p, err := h.Page(t.Context(), "s", client.PageOptions{})
	if err != nil || len(p.Records) != 3 {
		t.Fatal(p, err)
	}
	for i, want := range []string{"user:ada", "user:bob", "user:eve"} {
		if e, err := p.Records[i].Event(); err != nil || e.Actor != want {
			t.Errorf("the actor of %s is %q, want %q; %v", e.Type, e.Actor, want, err)
		}
	}
	if _, err := h.Rename(t.Context(), api.Rename{Session: "s", Title: new(""), Actor: "a\x00b"}); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("an actor with a control character: %v", err)
	}
}

// Follow ends when the server, or something before it, refuses the request, whatever
// form the answer has. It reconnects only after errors that may pass.
func TestFollowEndsWhenRefused(t *testing.T) {
	for name, answer := range map[string]struct {
		status int
		typ    string
		want   tapedeck.Kind
	}{
		"401": {http.StatusUnauthorized, "text/plain", tapedeck.Unauthorized}, "403": {http.StatusForbidden, "text/html", tapedeck.Forbidden},
		"404": {http.StatusNotFound, "text/plain", tapedeck.NotFound}, "page": {http.StatusOK, "text/html", tapedeck.Unsupported},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", answer.typ)
			w.WriteHeader(answer.status)
			_, _ = w.Write([]byte("who are you"))
		}))
		c, err := client.New(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range c.Follow(t.Context(), "s", client.FollowOptions{OnReconnect: func(int, error) { t.Fatalf("%s: it reconnects", name) }}) {
			if tapedeck.KindOf(err) != answer.want {
				t.Errorf("%s: %v", name, err)
			}
		}
		server.Close()
	}
}

// An error of a header function ends the request and the stream.
func TestHeaderError(t *testing.T) {
	expired := errors.New("the token cannot be renewed")
	c, err := client.New("http://127.0.0.1:9", client.WithHeader(func(context.Context) (http.Header, error) { return nil, expired }))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Follow(t.Context(), "s", client.FollowOptions{OnReconnect: func(int, error) { t.Fatal("it reconnects") }}) {
		if !errors.Is(err, expired) || tapedeck.KindOf(err) != tapedeck.Unauthorized {
			t.Errorf("got %v", err)
		}
	}
}
