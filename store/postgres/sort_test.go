package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store"
)

// TestSortedListsUseAnIndex: a page of a list costs the same however many sessions there
// are, because PostgreSQL can read them in order and sorts nothing.
func TestSortedListsUseAnIndex(t *testing.T) {
	address := pgtest.Shared(t).URL("postgres")
	s, err := Open(t.Context(), Options{URL: address + "&search_path=sorted"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := pgx.Connect(t.Context(), address+"&search_path=sorted")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	// The table is empty, so a sort would cost nothing; this says that it costs much.
	if _, err := c.Exec(t.Context(), "SET enable_sort = off; SET enable_seqscan = off; SET enable_bitmapscan = off"); err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{
		store.SortActivity, store.SortTitle, store.SortTokens, store.SortCost, store.SortDuration, store.SortFailures,
	} {
		for _, has := range []bool{false, true} {
			query, args := listQuery(&tapedeck.Filter{Sort: by}, store.Place{Gen: 5}, has)
			rows, err := c.Query(t.Context(), "EXPLAIN "+query, args...)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			if !usesOnly(plan, "sessions_by_"+store.SortColumn(by)) {
				t.Errorf("%s: %q", by, plan)
			}
		}
	}
}

// usesOnly reports whether a plan reads an index in its order, and sorts nothing.
func usesOnly(plan []string, index string) bool {
	whole := strings.Join(plan, "\n")
	return strings.Contains(whole, index) && !strings.Contains(whole, "Sort")
}
