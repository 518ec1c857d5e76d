package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
)

// maxSkip is the number of hits after which the pages of a search end.
const maxSkip = 10_000

// Search finds documents of sessions that can be read. The best matches come first,
// and of equal matches the newest.
func (x *Index) Search(ctx context.Context, q search.Query) (search.Result, error) {
	if _, err := search.Parse(q.Text); err != nil {
		return search.Result{}, err
	}
	skip := uint64(0)
	if q.Cursor != "" {
		var err error
		if skip, err = strconv.ParseUint(q.Cursor, 10, 31); err != nil {
			return search.Result{}, tapedeck.Errorf(tapedeck.Invalid, "the cursor %q was not issued by this search", q.Cursor)
		}
	}
	hits, next, err := x.Ranked(ctx, q, int(skip))
	if err != nil {
		return search.Result{}, err
	}
	found := search.Result{Hits: make([]search.Hit, len(hits))}
	for i := range hits {
		found.Hits[i] = hits[i].Hit
	}
	if next > 0 {
		found.Next = strconv.Itoa(next)
	}
	return found, nil
}

// Ranked returns the hits after the first skip ones, and how many to skip for the page
// after them, 0 if there is none. The cursor of the query does not count.
func (x *Index) Ranked(ctx context.Context, q search.Query, skip int) (hits []search.Ranked, next int, err error) {
	terms, err := search.Parse(q.Text)
	if err != nil {
		return nil, 0, err
	}
	if skip > maxSkip {
		return nil, 0, tapedeck.Errorf(tapedeck.Invalid, "a search gives at most %d hits", maxSkip).WithHint("look for more words")
	}
	f := &finder{match: tsQuery(terms), terms: terms, limit: max(1, q.Limit), skip: skip}
	statement, args := f.statement(&q, int64(skip))
	if err := x.store.read(ctx, f.row, statement, args...); err != nil {
		return nil, 0, err
	}
	if f.more {
		next = skip + f.limit
	}
	return f.readable(ctx, x.store), next, nil
}

// A finder collects a page of hits.
type finder struct {
	match string
	terms []search.Term
	limit int
	skip  int // see [search.Ranked]
	rows  int
	hits  []search.Ranked
	more  bool
}

// statement returns the statement that finds documents, and its arguments. It reads the
// texts of one page, not those of all matches. The labels of [vector] do not count in the
// rank.
func (f *finder) statement(q *search.Query, skip int64) (string, []any) {
	where, args := []string{"d.words @@ q.q", "s.deleted IS NULL"}, []any{f.match}
	and := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	for _, c := range [...]struct{ condition, value string }{
		{"s.id = $%d", q.Session}, {"d.kind = $%d", q.Kind}, {"d.role = $%d", q.Role},
		{"s.status = $%d", string(q.Status)}, {"s.agent = $%d", q.Agent}, {"s.owner = $%d", q.Owner},
	} {
		if c.value != "" {
			and(c.condition, stored(c.value))
		}
	}
	if !q.From.IsZero() {
		and("d.time >= $%d", ceilMilliseconds(q.From))
	}
	if !q.To.IsZero() {
		and("d.time < $%d", ceilMilliseconds(q.To))
	}
	args = append(args, int64(f.limit+1), skip)
	return fmt.Sprintf(`SELECT p.session, d."offset", d.kind, d.role, d.thread, d.invocation, d.time, d.text, p.rank::float8 FROM (
		SELECT d.id, s.id AS session, ts_rank('{1, 1, 1, 1}', d.words, q.q) AS rank, d.time
		FROM (SELECT $1::text::tsquery AS q) q, docs d JOIN sessions s ON s.gen = d.session
		WHERE %s ORDER BY rank DESC, d.time DESC, d.id DESC LIMIT $%d OFFSET $%d) p
	JOIN docs d ON d.id = p.id ORDER BY p.rank DESC, p.time DESC, p.id DESC`, strings.Join(where, " AND "), len(args)-1, len(args)), args
}

func (f *finder) row(r pgx.Rows) error {
	if f.rows == f.limit {
		f.more = true
		return nil
	}
	f.rows++
	f.skip++
	h := search.Ranked{Skip: f.skip}
	var at int64
	var text string
	if err := r.Scan(&h.Session, &h.Offset, &h.Kind, &h.Role, &h.Thread, &h.Invocation, &at, &text, &h.Rank); err != nil {
		return err
	}
	for _, s := range [...]*string{&h.Session, &h.Role, &h.Thread, &h.Invocation, &text} {
		*s = original(*s)
	}
	h.Time = time.UnixMilli(at).UTC()
	var ok bool
	if h.Snippet, ok = search.Match(text, f.terms); ok {
		f.hits = append(f.hits, h)
	}
	return nil
}

// readable returns the hits in sessions that can be read now, with the titles of the
// sessions.
func (f *finder) readable(ctx context.Context, s *Store) []search.Ranked {
	known := map[string]*view{}
	out := make([]search.Ranked, 0, len(f.hits))
	for _, h := range f.hits {
		v, ok := known[h.Session]
		if !ok {
			v, _ = s.lookup(ctx, h.Session) // on an error the hit is left out
			known[h.Session] = v
		}
		if v != nil {
			h.Title = v.Title
			out = append(out, h)
		}
	}
	return out
}
