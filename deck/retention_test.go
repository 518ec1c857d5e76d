package deck_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/deck"
)

// A listener receives the sessions that the retention has deleted.
type listener struct {
	slog.Handler
	gone chan string
}

func (l listener) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "the retention has deleted") {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "session" {
				l.gone <- a.Value.String()
			}
			return true
		})
	}
	return nil
}

func (l listener) Enabled(context.Context, slog.Level) bool { return true }

// TestRetention: a deck deletes what an owner has too many. Forks keep what they share, and
// the audit log says what went and why.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	d := openAt(t, dir, deck.Options{})
	for _, id := range []string{"s1", "s2"} {
		if _, err := d.Create(t.Context(), api.NewSession{ID: id, Owner: "ada", Title: "a secret title"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Session("s1").Fork(t.Context(), api.Fork{ID: "f1", Owner: "bob"}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := listener{slog.DiscardHandler, make(chan string, 10)}
	d = openAt(t, dir, deck.Options{Logger: slog.New(l), Retention: deck.Retention{Rule: deck.RetentionRule{Sessions: 1, Age: time.Hour}}})
	if got := <-l.gone; got != "s1" {
		t.Errorf("%s was deleted", got)
	}
	if _, err := d.Session("s1").Info(t.Context()); err == nil {
		t.Error("s1 is still there")
	}
	if _, err := d.Session("s2").Info(t.Context()); err != nil {
		t.Error(err)
	}
	n := 0
	for _, err := range d.Session("f1").Events(t.Context(), 0) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n < 2 { // that of s1, and its own
		t.Errorf("the fork has %d events", n)
	}
	page, err := d.Audit(t.Context(), api.AuditQuery{Session: "s1"})
	if err != nil || len(page.Records) != 1 {
		t.Fatalf("%v %+v", err, page)
	}
	if r := page.Records[0]; r.Action != audit.Delete || r.Role != audit.RoleServer || r.Reason != "retention: ada has more than 1 sessions" {
		t.Errorf("%+v", r)
	}
}
