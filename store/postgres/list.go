package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

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
	l := &lister{store: s, limit: 100, query: strings.ToLower(f.Query), matchIDs: f.MatchIDs, filter: &f}
	if f.Limit > 0 {
		l.limit = min(f.Limit, 1000)
	}
	if err := s.list(ctx, l, query, args); err != nil {
		return tapedeck.SessionPage{}, err
	}
	return l.page, nil
}

// listStep is how many rows of the catalogue one query returns.
const listStep = 256

// list reads the catalogue in parts until the page is full.
func (s *Store) list(ctx context.Context, l *lister, query string, args []any) error {
	for before := int64(math.MaxInt64); !l.full; before = l.last {
		l.rows = 0
		if err := s.read(ctx, l.row, query, append(args, before, int64(listStep))...); err != nil || l.rows < listStep {
			return err
		}
	}
	return nil
}

// listQuery returns a statement for the conditions that SQL can test, and its
// arguments, of which the last two are missing: the Gen before which a part begins, and
// its number of rows.
func listQuery(f *tapedeck.Filter) (string, []any, error) {
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
	and("s.kind = $%d", string(kind))
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
	if f.Cursor != "" {
		gen, err := strconv.ParseUint(f.Cursor, 10, 63)
		if err != nil {
			return "", nil, tapedeck.Errorf(tapedeck.Invalid, "the cursor %q is not one of ours", f.Cursor)
		}
		and("s.gen < $%d", int64(gen))
	}
	n := len(args)
	return fmt.Sprintf(`SELECT %s FROM sessions s JOIN heads h ON h.session = s.gen WHERE %s AND s.gen < $%d ORDER BY s.gen DESC LIMIT $%d`,
		sessionColumns, strings.Join(where, " AND "), n+1, n+2), args[:n:n], nil
}

// A lister collects sessions until its page is full.
type lister struct {
	store    *Store
	limit    int
	query    string   // in lower case
	matchIDs []string // ids that pass query, too
	filter   *tapedeck.Filter
	page     tapedeck.SessionPage
	rows     int   // of the current part
	last     int64 // gen of the last row
	full     bool
}

func (l *lister) row(r pgx.Rows) error {
	l.rows++
	if l.full {
		return nil
	}
	var v view
	if _, err := scanSession(&v, r); err != nil {
		return err
	}
	l.last = v.Gen
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
		l.page.Next = strconv.FormatInt(l.page.Sessions[l.limit-1].Gen, 10)
		l.full = true
		return nil
	}
	l.page.Sessions = append(l.page.Sessions, v.Session)
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
