package sqlite

import (
	"context"
	"database/sql/driver"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
)

// maxSkip is the number of hits after which the pages of a search end.
const maxSkip = 10_000

// Search finds documents of sessions that can be read. The best matches come first,
// and of equal matches the newest.
func (x *Index) Search(ctx context.Context, q search.Query) (search.Result, error) {
	terms, err := search.Parse(q.Text)
	if err != nil {
		return search.Result{}, err
	}
	skip := uint64(0)
	if q.Cursor != "" {
		if skip, err = strconv.ParseUint(q.Cursor, 10, 31); err != nil {
			return search.Result{}, tapedeck.Errorf(tapedeck.Invalid, "the cursor %q was not issued by this search", q.Cursor)
		}
	}
	if skip > maxSkip {
		return search.Result{}, tapedeck.Errorf(tapedeck.Invalid, "a search gives at most %d hits", maxSkip).WithHint("look for more words")
	}
	f := &finder{match: ftsQuery(terms), terms: terms, limit: max(1, q.Limit)}
	statement, args := f.statement(&q, int64(skip))
	if err := x.read(ctx, func(c *conn) error { return f.find(c, statement, args) }); err != nil {
		return search.Result{}, err
	}
	found := search.Result{Hits: f.readable(ctx, x.store)}
	if f.more {
		found.Next = strconv.FormatUint(skip+uint64(f.limit), 10)
	}
	return found, nil
}

// ftsQuery returns the query for FTS5. It puts all words between quotes, where nothing in
// them has a meaning.
func ftsQuery(terms []search.Term) string {
	var wanted, unwanted []string
	for _, t := range terms {
		s := `"` + strings.Join(t.Words, " ") + `"`
		if t.Prefix {
			s += "*"
		}
		if t.Not {
			unwanted = append(unwanted, s)
		} else {
			wanted = append(wanted, s)
		}
	}
	query := "(" + strings.Join(wanted, " AND ") + ")"
	if len(unwanted) > 0 {
		query += " NOT (" + strings.Join(unwanted, " OR ") + ")"
	}
	return query
}

// A finder collects a page of hits.
type finder struct {
	match string
	terms []search.Term
	limit int
	ids   []int64
	hits  []search.Hit
	more  bool
}

// statement returns the statement that finds documents, and its arguments.
func (f *finder) statement(q *search.Query, skip int64) (string, []driver.Value) {
	where, args := []string{"words MATCH ?", "s.deleted IS NULL"}, []driver.Value{f.match}
	for _, c := range [...]struct{ condition, value string }{
		{"s.id = ?", q.Session}, {"d.kind = ?", q.Kind}, {"d.role = ?", q.Role},
		{"s.status = ?", string(q.Status)}, {"s.agent = ?", q.Agent}, {"s.owner = ?", q.Owner},
	} {
		if c.value != "" {
			where, args = append(where, c.condition), append(args, c.value)
		}
	}
	if !q.From.IsZero() {
		where, args = append(where, "d.time >= ?"), append(args, ceilMilliseconds(q.From))
	}
	if !q.To.IsZero() {
		where, args = append(where, "d.time < ?"), append(args, ceilMilliseconds(q.To))
	}
	return `SELECT d.id, s.id, d.offset, d.kind, d.role, d.thread, d.invocation, d.time
	FROM words JOIN docs d ON d.id = words.rowid JOIN log.sessions s ON s.gen = d.session
	WHERE ` + strings.Join(where, " AND ") + ` ORDER BY words.rank, d.time DESC, d.id DESC LIMIT ? OFFSET ?`,
		append(args, int64(f.limit+1), skip)
}

// sqlText returns the text of one document. It runs only for the hits of the page,
// because texts can be long.
const sqlText = `SELECT text FROM docs WHERE id = ?`

func (f *finder) find(c *conn, statement string, args []driver.Value) error {
	err := c.query(func(row []driver.Value) error {
		if len(f.hits) == f.limit {
			f.more = true
			return errStop
		}
		f.ids = append(f.ids, integer(row[0]))
		f.hits = append(f.hits, search.Hit{
			Session: text(row[1]), Offset: integer(row[2]), Kind: text(row[3]), Role: text(row[4]), Thread: text(row[5]),
			Invocation: text(row[6]), Time: moment(row[7]),
		})
		return nil
	}, statement, args...)
	for i := 0; err == nil && i < len(f.hits); i++ {
		err = c.query(func(row []driver.Value) error {
			f.hits[i].Snippet = search.Snippet(text(row[0]), f.terms)
			return nil
		}, sqlText, f.ids[i])
	}
	return err
}

// readable returns the hits in sessions that can be read now, with the titles of the
// sessions.
func (f *finder) readable(ctx context.Context, s *Store) []search.Hit {
	known := map[string]*view{}
	out := make([]search.Hit, 0, len(f.hits))
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
