package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// List implements [tapedeck.Catalogue]. The cursor is the Gen of the last session of
// the previous page.
func (s *Store) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	if err := ctx.Err(); err != nil {
		return tapedeck.SessionPage{}, err
	}
	query, args, err := listQuery(&f)
	if err != nil {
		return tapedeck.SessionPage{}, err
	}
	l := &lister{ctx: ctx, store: s, limit: 100, query: strings.ToLower(f.Query), matchIDs: f.MatchIDs, filter: &f}
	if f.Limit > 0 {
		l.limit = min(f.Limit, 1000)
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
	// The plus keeps SQLite from using the index of kind: another one is better.
	if f.Owner != "" || f.Parent != "" || f.OpenRun || f.Inputs || f.Status == tapedeck.StatusWaiting {
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
	if f.Cursor != "" {
		gen, err := strconv.ParseUint(f.Cursor, 10, 63)
		if err != nil {
			return "", nil, tapedeck.Errorf(tapedeck.Invalid, "the cursor %q is not one of ours", f.Cursor)
		}
		and("s.gen < ?", int64(gen))
	}
	return `SELECT ` + sessionColumns + ` FROM sessions s JOIN heads h ON h.session = s.gen WHERE ` +
		strings.Join(where, " AND ") + ` ORDER BY s.gen DESC`, args, nil
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
	rows     int
}

func (l *lister) row(row []driver.Value) error {
	if l.rows++; l.rows%256 == 0 && l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	// SQL knows upper and lower case only for ASCII, so this is tested here.
	if l.query != "" && !l.matches(text(row[4])) && !l.matches(text(row[1])) && !slices.Contains(l.matchIDs, text(row[1])) {
		return nil
	}
	var v view
	if err := scanSession(&v, row); err != nil {
		return err
	}
	l.store.asPublished(&v)
	if l.store.isGone(&v) || !store.HasLabels(&v.Session, l.filter) {
		return nil
	}
	if len(l.page.Sessions) == l.limit { // there is one more
		l.page.Next = strconv.FormatInt(l.page.Sessions[l.limit-1].Gen, 10)
		return errStop
	}
	l.page.Sessions = append(l.page.Sessions, v.Session)
	return nil
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
