package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// TestRestartDropsDerivedData: if an owner ends before its observers have removed the data
// derived from erased events, the next owner drops that data, and nothing else.
func TestRestartDropsDerivedData(t *testing.T) {
	at := place(t)
	s := open(t, postgres.Options{URL: at})
	done, err := s.Create(t.Context(), tapedeck.Spec{ID: "a", Kind: tapedeck.KindSession, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated}, {Type: "NOTE", Data: []byte(`{"text":"MARK"}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	fold, journal := fmt.Sprintf("%sfold/a/%d/x.1/1", tapedeck.ViewPrefix, done.Session.Gen), tapedeck.ViewPrefix+"import/e/imp_1"
	fails := errors.New("the process dies")
	var once sync.Once // it is retried until the store is closed
	save := func(ctx context.Context) {
		for id, text := range map[string]string{fold: "MARK", journal: "a session"} {
			if _, err := s.Create(ctx, tapedeck.Spec{ID: id, Kind: tapedeck.KindView, ContentType: "text/plain", Chunks: [][]byte{[]byte(text)}}); err != nil {
				t.Error(err)
			}
		}
	}
	s.Observe(tapedeck.Observer{Erased: func(ctx context.Context, _ string, _ []string) error { // a fold has read the event before, and saves its result
		once.Do(func() { save(ctx) })
		return fails
	}})
	if _, err := s.Erase(t.Context(), tapedeck.Erasure{Session: "a", Ranges: []tapedeck.OffsetRange{{From: 1, To: 2}}, Events: []tapedeck.Event{{Type: tapedeck.SessionRedacted, Data: []byte(`{"ranges":[[1,2]]}`)}}}); err == nil {
		t.Fatal("the erasure says that no copies are left")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, postgres.Options{URL: at})
	if _, err := again.Head(t.Context(), fold); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("the view: %v", err)
	}
	if _, err := again.Head(t.Context(), journal); err != nil {
		t.Errorf("the journal of an import, which is not derived: %v", err)
	}
}
