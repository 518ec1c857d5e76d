package sqlite

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// TestSortedListsUseAnIndex: a page of a list costs the same however many sessions there
// are, because SQLite reads them in order and sorts nothing.
func TestSortedListsUseAnIndex(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for by, cursor := range map[string]string{
		store.SortCreated: "5", store.SortActivity: "activity.5.5", store.SortTitle: "title.YQ.5", store.SortTokens: "tokens.5.5",
		store.SortCost: "cost.5.5", store.SortDuration: "duration.5.5", store.SortFailures: "failures.5.5",
	} {
		for _, f := range []tapedeck.Filter{{Sort: by}, {Sort: by, Cursor: cursor}, {Sort: by, Cursor: cursor, Status: tapedeck.StatusFailed, Agent: "a", Closed: true}} {
			query, args, err := listQuery(&f)
			if err != nil {
				t.Fatal(err)
			}
			var plan []string
			err = s.readers.use(t.Context(), func(c *conn) error {
				return c.query(func(row []driver.Value) error {
					plan = append(plan, text(row[3]))
					return nil
				}, "EXPLAIN QUERY PLAN "+query, args...)
			})
			if err != nil {
				t.Fatal(err)
			}
			sorts := slices.ContainsFunc(plan, func(p string) bool { return strings.Contains(p, "B-TREE") })
			index := fmt.Sprintf("sessions_by_%s", map[bool]string{true: "kind", false: strings.Replace(by, "title", "title_key", 1)}[by == store.SortCreated])
			if sorts || !strings.Contains(plan[0], index) || f.Cursor != "" && !strings.HasPrefix(plan[0], "SEARCH s") {
				t.Errorf("%+v: %q", f, plan)
			}
		}
	}
}
