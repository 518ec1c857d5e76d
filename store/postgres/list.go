package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// List implements [tapedeck.Catalogue]. The cursor is the [store.Place] of the last
// session of the previous page.
func (s *Store) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	page, _, err := s.ListPlaces(ctx, f)
	return page, err
}

// ListPlaces is List, and returns the place of each session of the page, too: as the
// database has it, which a session may have left since.
func (s *Store) ListPlaces(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, []store.Place, error) {
	if err := cmp.Or(ctx.Err(), store.CheckFilter(&f)); err != nil {
		return tapedeck.SessionPage{}, nil, err
	}
	after, has, err := store.ParseCursor(&f)
	if err != nil {
		return tapedeck.SessionPage{}, nil, err
	}
	l := &lister{store: s, limit: 100, query: strings.ToLower(f.Query), matchIDs: f.MatchIDs, filter: &f}
	if f.Limit > 0 {
		l.limit = min(f.Limit, 1000)
	}
	if err := s.list(ctx, l, after, has); err != nil {
		return tapedeck.SessionPage{}, nil, err
	}
	return l.page, l.places, nil
}

// listStep is how many rows of the catalogue one query returns.
const listStep = 256

// list reads the catalogue in parts until the page is full.
func (s *Store) list(ctx context.Context, l *lister, after store.Place, has bool) error {
	for ; !l.full; after, has = l.read, true {
		query, args := listQuery(l.filter, after, has)
		l.rows = 0
		if err := s.read(ctx, l.row, query, args...); err != nil || l.rows < listStep {
			return err
		}
	}
	return nil
}

// listQuery returns a statement for the part of a list that begins after a place, with the
// conditions that SQL can test, and its arguments. Its last column is what the list is
// sorted by.
func listQuery(f *tapedeck.Filter, after store.Place, has bool) (string, []any) {
	kind := f.Kind
	if kind == "" {
		kind = tapedeck.KindSession
	}
	where := []string{"s.deleted IS NULL"}
	var args []any
	and := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	if f.Sort == store.SortCreated {
		and("s.kind = $%d", string(kind))
	} else {
		where = append(where, "s.kind = 'session'") // the indexes have only these
	}
	for _, c := range [...]struct{ condition, value string }{
		{"s.status = $%d", string(f.Status)}, {"s.agent = $%d", f.Agent}, {"s.owner = $%d", f.Owner}, {"s.parent = $%d", f.Parent},
	} {
		if c.value != "" {
			and(c.condition, stored(c.value))
		}
	}
	if !f.From.IsZero() {
		and("s.created >= $%d", ceilMilliseconds(f.From))
	}
	if !f.To.IsZero() {
		and("s.created < $%d", ceilMilliseconds(f.To))
	}
	if f.OpenRun {
		where = append(where, "s.open_runs > 0")
	}
	if f.Inputs {
		where = append(where, "s.inputs IS NOT NULL")
	}
	if f.Status == tapedeck.StatusWaiting {
		where = append(where, "s.waiting IS NOT NULL") // true for each of them, so that the index is used
	}
	if f.Closed {
		where = append(where, "s.closed")
	}
	return inOrder(f, after, has, where, args)
}

// inOrder completes the statement of a list: where it begins, and its order.
func inOrder(f *tapedeck.Filter, after store.Place, has bool, where []string, args []any) (string, []any) {
	column, key := store.SortColumn(f.Sort), any(after.Number)
	switch f.Sort {
	case store.SortCreated:
		column, key = "gen", after.Gen
	case store.SortTitle:
		key = after.Text
	}
	before, direction := "<", "DESC"
	if f.Ascending {
		before, direction = ">", "ASC"
	}
	if has {
		args = append(args, key, after.Gen)
		where = append(where, fmt.Sprintf("(s.%s, s.gen) %s ($%d, $%d)", column, before, len(args)-1, len(args)))
	}
	args = append(args, int64(listStep))
	return fmt.Sprintf(`SELECT %s, s.%s FROM sessions s JOIN heads h ON h.session = s.gen WHERE %s ORDER BY s.%s %s, s.gen %s LIMIT $%d`,
		sessionColumns, column, strings.Join(where, " AND "), column, direction, direction, len(args)), args
}

// A lister collects sessions until its page is full.
type lister struct {
	store    *Store
	limit    int
	query    string   // in lower case
	matchIDs []string // ids that pass query, too
	filter   *tapedeck.Filter
	page     tapedeck.SessionPage
	rows     int           // of the current part
	read     store.Place   // of the last row
	places   []store.Place // of the sessions of page
	full     bool
}

func (l *lister) row(r pgx.Rows) error {
	l.rows++
	if l.full {
		return nil
	}
	var v view
	var key any
	if _, err := scanSession(&v, r, &key); err != nil {
		return err
	}
	l.read = store.Place{Gen: v.Gen} // as the database has it
	switch key := key.(type) {
	case int64:
		l.read.Number = key
	case string:
		l.read.Text = key
	}
	// SQL knows upper and lower case by the locale of the database, so this is tested
	// here.
	if l.query != "" && !l.matches(v.Title) && !l.matches(v.ID) && !slices.Contains(l.matchIDs, v.ID) {
		return nil
	}
	l.store.asPublished(&v)
	if l.store.isGone(&v) || !store.HasLabels(&v.Session, l.filter) {
		return nil
	}
	if len(l.page.Sessions) == l.limit { // there is one more
		l.page.Next = store.FormatCursor(l.filter, l.places[l.limit-1])
		l.full = true
		return nil
	}
	l.page.Sessions, l.places = append(l.page.Sessions, v.Session), append(l.places, l.read)
	return nil
}

func (l *lister) matches(s string) bool { return strings.Contains(strings.ToLower(s), l.query) }

// asPublished replaces v by the published view of its session. Between a commit and
// its publication the database is ahead, and a client that then reads what the list
// has must find it.
func (s *Store) asPublished(v *view) {
	if st, ok := s.index.Load(v.ID); ok && s.lease.holds() {
		if seen := st.(*state).published.Load(); seen != nil && seen.Gen == v.Gen {
			*v = *seen
		}
	}
}
