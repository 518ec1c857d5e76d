package deck_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

func TestMain(m *testing.M) {
	if place, rest, ok := strings.Cut(os.Getenv("TAPEDECK_FATAL"), "|"); ok {
		sessions, do, _ := strings.Cut(rest, "|")
		if err := fatalProcess(place, sessions, do); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

// join starts one of several servers of a database, and returns its URL.
func join(t *testing.T, database string) (*deck.Member, string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	m, err := deck.Join(t.Context(), t.TempDir(), deck.Options{Postgres: &postgres.Options{URL: database, Standby: true, Address: url}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- m.Serve(l) }()
	t.Cleanup(func() {
		if err := m.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return m, url
}

// TestMembers: the second server of a database forwards to the first one, and owns the
// database as soon as that one is closed. Then it answers itself what both have stored.
func TestMembers(t *testing.T) {
	c := pgtest.Shared(t)
	db, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := join(t, c.URL(db))
	second, url := join(t, c.URL(db))
	if first.Deck() == nil || second.Deck() != nil {
		t.Fatalf("the first server does not own the database, or the second one does")
	}
	cl, err := client.New(url)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := cl.Create(t.Context(), api.NewSession{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	second.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if !strings.Contains(w.Body.String(), `tapedeck_forwarded_requests_total{outcome="answered"}`) || !strings.Contains(w.Body.String(), "tapedeck_owner 0") {
		t.Errorf("the metrics of a server that forwards are\n%s", w.Body)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	s, err := cl.Session(t.Context(), "a")
	if err != nil || s.Head != 1 {
		t.Errorf("the session is at %d, %v", s.Head, err)
	}
	if second.Deck() == nil {
		t.Error("the second server does not own the database")
	}
}

// TestJoinRefuses: what cannot have several servers says so.
func TestJoinRefuses(t *testing.T) {
	for _, c := range []struct {
		options deck.Options
		says    string
	}{
		{deck.Options{}, "only sessions in PostgreSQL"},
		{deck.Options{InMemory: true, Postgres: &postgres.Options{URL: "postgres://"}}, "only sessions in PostgreSQL"},
		{deck.Options{Postgres: &postgres.Options{URL: "postgres://", Address: "deck1"}}, "the address of a server"},
	} {
		if _, err := deck.Join(t.Context(), t.TempDir(), c.options, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.options, err)
		}
	}
}
