package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// A session that was deleted and is kept for its forks keeps no totals: these have words
// of its messages, and an erasure does not find it any more.
func TestDeletedSessionsHaveNoTotals(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	created, err := s.Create(ctx, tapedeck.Spec{ID: "parent", Kind: tapedeck.KindSession})
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	if _, err := s.Create(ctx, tapedeck.Spec{ID: "fork", Kind: tapedeck.KindSession, Parent: "parent", ForkAt: &at}); err != nil {
		t.Fatal(err)
	}
	parent := tapedeck.Session{ID: "parent", Gen: created.Session.Gen, Totals: tapedeck.Totals{Tokens: 9, Row: json.RawMessage(`{"last":"a secret"}`)}}
	if err := s.SaveTotals(ctx, []tapedeck.Session{parent}); err != nil {
		t.Fatal(err)
	}
	kept := func() (rows, with int) {
		err := s.readers.use(ctx, func(c *conn) error {
			return c.query(func(row []driver.Value) error {
				rows++
				if row[0] != nil {
					with++
				}
				return nil
			}, "SELECT totals FROM sessions WHERE id = 'parent'")
		})
		if err != nil {
			t.Fatal(err)
		}
		return rows, with
	}
	if rows, with := kept(); rows != 1 || with != 1 {
		t.Fatalf("%d rows, %d with totals; the test proves nothing", rows, with)
	}
	if err := s.Delete(ctx, "parent"); err != nil {
		t.Fatal(err)
	}
	if rows, with := kept(); rows != 1 || with != 0 {
		t.Errorf("%d rows, %d with totals", rows, with)
	}
}
