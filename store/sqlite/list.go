package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// List implements [tapedeck.Catalogue]. The cursor is the [store.Place] of the last
// session of the previous page.
func (s *Store) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	if err := cmp.Or(ctx.Err(), store.CheckFilter(&f)); err != nil {
		return tapedeck.SessionPage{}, err
	}
	l := &lister{ctx: ctx, store: s, limit: 100, query: strings.ToLower(f.Query), matchIDs: f.MatchIDs, filter: &f}
	if f.Limit > 0 {
		l.limit = min(f.Limit, 1000)
	}
	if s.keys != nil && f.Sort == store.SortTitle {
		return l.byTitle()
	}
	query, args, err := listQuery(&f)
	if err != nil {
		return tapedeck.SessionPage{}, err
	}
	if err := s.readers.use(ctx, func(c *conn) error { return c.query(l.row, query, args...) }); err != nil {
		return tapedeck.SessionPage{}, err
	}
	return l.page, nil
}

// listQuery returns a statement for the conditions that SQL can test, and its
// arguments. It has no LIMIT: the lister reads rows until it has enough.
func listQuery(f *tapedeck.Filter) (string, []driver.Value, error) {
	kind := f.Kind
	if kind == "" {
		kind = tapedeck.KindSession
	}
	where := []string{"s.deleted IS NULL"}
	var args []driver.Value
	and := func(condition string, arg driver.Value) {
		where, args = append(where, condition), append(args, arg)
	}
	// The plus keeps SQLite from using the index of kind: another one is better. The
	// indexes of sorted lists have only sessions, so there the kind is in the statement.
	if f.Sort != store.SortCreated {
		where = append(where, "s.kind = 'session'")
	} else if f.Owner != "" || f.Parent != "" || f.OpenRun || f.Inputs || f.Status == tapedeck.StatusWaiting {
		and("+s.kind = ?", string(kind))
	} else {
		and("s.kind = ?", string(kind))
	}
	for _, c := range [...]struct{ condition, value string }{
		{"s.status = ?", string(f.Status)}, {"s.agent = ?", f.Agent}, {"s.owner = ?", f.Owner}, {"s.parent = ?", f.Parent},
	} {
		if c.value != "" {
			and(c.condition, c.value)
		}
	}
	if !f.From.IsZero() {
		and("s.created >= ?", ceilMilliseconds(f.From))
	}
	if !f.To.IsZero() {
		and("s.created < ?", ceilMilliseconds(f.To))
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
		where = append(where, "s.closed = 1")
	}
	return inOrder(f, where, args)
}

// inOrder completes the statement of a list: where it begins, and its order. The last
// column is what it is sorted by.
func inOrder(f *tapedeck.Filter, where []string, args []driver.Value) (string, []driver.Value, error) {
	after, has, err := store.ParseCursor(f)
	if err != nil {
		return "", nil, err
	}
	from, column, key := "sessions s JOIN", store.SortColumn(f.Sort), driver.Value(after.Number)
	switch {
	case f.Sort == store.SortCreated:
		column, key = "gen", after.Gen
	case f.Owner == "" && f.Parent == "": // the index of these is better, and the rest is sorted
		from = "sessions s INDEXED BY sessions_by_" + column + " CROSS JOIN"
	}
	if f.Sort == store.SortTitle {
		key = after.Text
	}
	before, direction := "<", "DESC"
	if f.Ascending {
		before, direction = ">", "ASC"
	}
	if has {
		where, args = append(where, fmt.Sprintf("(s.%s, s.gen) %s (?, ?)", column, before)), append(args, key, after.Gen)
	}
	return fmt.Sprintf(`SELECT %s, s.%s FROM %s heads h ON h.session = s.gen WHERE %s ORDER BY s.%s %s, s.gen %s`,
		sessionColumns, column, from, strings.Join(where, " AND "), column, direction, direction), args, nil
}

// A lister collects sessions until its page is full.
type lister struct {
	ctx      context.Context
	store    *Store
	limit    int
	query    string   // in lower case
	matchIDs []string // ids that pass query, too
	filter   *tapedeck.Filter
	page     tapedeck.SessionPage
	last     store.Place // of the last session of page
	rows     int
}

func (l *lister) row(row []driver.Value) error {
	var v view
	if ok, err := l.scan(&v, row); !ok {
		return err
	}
	place := store.Place{Gen: v.Gen} // as the database has it
	switch key := row[len(row)-1].(type) {
	case int64:
		place.Number = key
	default:
		place.Text = text(key)
	}
	if !l.shows(&v) {
		return nil
	}
	if len(l.page.Sessions) == l.limit { // there is one more
		l.page.Next = store.FormatCursor(l.filter, l.last)
		return errStop
	}
	l.page.Sessions, l.last = append(l.page.Sessions, v.Session), place
	return nil
}

// scan reads a row. It reports false if the session does not have the text that the filter
// asks for. SQL knows upper and lower case only for ASCII, so this is tested here: before
// the rest of the row is decoded, if the title is not encrypted.
func (l *lister) scan(v *view, row []driver.Value) (bool, error) {
	if l.rows++; l.rows%256 == 0 && l.ctx.Err() != nil {
		return false, l.ctx.Err()
	}
	found := l.query == "" || l.matches(text(row[1])) || slices.Contains(l.matchIDs, text(row[1])) || l.matches(text(row[4]))
	encrypted := row[keyColumn] != nil
	if !found && !encrypted {
		return false, nil
	}
	if err := scanSession(v, l.store.keyring(), row); err != nil {
		return false, err
	}
	return found || encrypted && l.matches(v.Title), nil
}

// shows replaces v by its published view, and reports whether the list has the session.
func (l *lister) shows(v *view) bool {
	l.store.asPublished(v)
	return !l.store.isGone(v) && store.HasLabels(&v.Session, l.filter)
}

func (l *lister) matches(s string) bool { return strings.Contains(strings.ToLower(s), l.query) }

// asPublished replaces v by the published view of its session. Between a commit and
// its publication the database is ahead, and a client that then reads what the list
// has must find it.
func (s *Store) asPublished(v *view) {
	if st, ok := s.index.Load(v.ID); ok {
		if seen := st.(*state).published.Load(); seen != nil && seen.Gen == v.Gen {
			*v = *seen
		}
	}
}
