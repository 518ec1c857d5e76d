package memory

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
)

// An Index keeps the searchable documents of a store. A search reads all of them, and
// the newest match counts as the best.
type Index struct {
	store *Store

	mu   sync.Mutex
	docs map[int64]*indexed // by Gen of the sessions
}

type indexed struct {
	docs               []search.Document
	seen, resume, base int64
}

// OpenIndex returns a new index.
func (m *Store) OpenIndex() (*Index, error) {
	return &Index{store: m, docs: map[int64]*indexed{}}, nil
}

// sessions returns the sessions that can be read, the newest Gen first. It removes the
// documents of others.
func (x *Index) sessions(ctx context.Context) ([]tapedeck.Session, error) {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var out []tapedeck.Session
	readable := map[int64]bool{}
	for _, l := range slices.Backward(x.store.order) {
		if !l.gone && l.Kind == tapedeck.KindSession {
			out = append(out, l.Session)
			readable[l.Gen] = true
		}
	}
	maps.DeleteFunc(x.docs, func(gen int64, _ *indexed) bool { return !readable[gen] })
	return out, nil
}

// Unindexed returns the sessions with events that are not indexed, newest first.
func (x *Index) Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sessions, err := x.sessions(ctx)
	var out []search.Pending
	total := 0
	for _, s := range sessions {
		u := search.Pending{Session: s.ID, Gen: s.Gen, Head: s.Head, From: s.ForkedAt}
		if i := x.docs[s.Gen]; i != nil {
			if i.seen == s.Head {
				continue
			}
			u.From, u.Base = i.resume, i.base
		}
		if total++; total <= limit {
			out = append(out, u)
		}
	}
	return out, total, err
}

// Index adds documents. They replace those that began at From or later.
func (x *Index) Index(ctx context.Context, in search.Batch) error {
	s, err := x.store.Head(ctx, in.Session)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || s.Gen != in.Gen {
		return nil // it was deleted meanwhile
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	i := x.docs[in.Gen]
	if i == nil {
		i = &indexed{}
		x.docs[in.Gen] = i
	}
	i.seen, i.resume, i.base = in.Seen, in.Resume, in.Base
	i.docs = slices.DeleteFunc(i.docs, func(d search.Document) bool { return d.Offset >= in.From })
	for _, d := range in.Documents {
		if d.Kind == search.DocTitle {
			i.docs = slices.DeleteFunc(i.docs, func(d search.Document) bool { return d.Kind == search.DocTitle })
		}
		if d.Text != "" {
			i.docs = append(i.docs, d)
		}
	}
	return nil
}

// Forget removes the documents of a session. Those of a deleted session are removed
// by the next search.
func (x *Index) Forget(ctx context.Context, session string) error {
	s, err := x.store.Head(ctx, session)
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound, tapedeck.Gone:
		return nil
	}
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.docs, s.Gen)
	return nil
}

// Clean does nothing, because there are no copies.
func (x *Index) Clean(context.Context) error { return nil }

// Search finds documents of sessions that can be read, the newest first.
func (x *Index) Search(ctx context.Context, q search.Query) (search.Result, error) {
	skip := 0
	if q.Cursor != "" {
		n, err := strconv.ParseUint(q.Cursor, 10, 31)
		if err != nil {
			return search.Result{}, tapedeck.Errorf(tapedeck.Invalid, "the cursor %q is not one of ours", q.Cursor)
		}
		skip = int(n)
	}
	hits, next, err := x.Ranked(ctx, q, skip)
	found := search.Result{Hits: make([]search.Hit, len(hits))}
	for i := range hits {
		found.Hits[i] = hits[i].Hit
	}
	if next > 0 {
		found.Next = strconv.Itoa(next)
	}
	return found, err
}

// Ranked returns the hits after the first skip ones, and how many to skip for the page
// after them, 0 if there is none. The cursor of the query does not count.
func (x *Index) Ranked(ctx context.Context, q search.Query, skip int) (out []search.Ranked, next int, err error) {
	terms, err := search.Parse(q.Text)
	if err != nil {
		return nil, 0, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	sessions, err := x.sessions(ctx)
	if err != nil {
		return nil, 0, err
	}
	var hits []search.Hit
	for _, s := range sessions {
		if i := x.docs[s.Gen]; i != nil && wants(&q, &s) {
			hits = append(hits, i.find(&q, terms, &s)...)
		}
	}
	slices.SortStableFunc(hits, func(a, b search.Hit) int { return b.Time.Compare(a.Time) })
	hits = hits[min(skip, len(hits)):]
	if limit := max(1, q.Limit); len(hits) > limit {
		hits, next = hits[:limit], skip+limit
	}
	for i := range hits {
		out = append(out, search.Ranked{Hit: hits[i], Skip: skip + i + 1})
	}
	return out, next, nil
}

func wants(q *search.Query, s *tapedeck.Session) bool {
	return (q.Session == "" || q.Session == s.ID) && (q.Status == "" || q.Status == s.Status) &&
		(q.Agent == "" || q.Agent == s.Agent) && (q.Owner == "" || q.Owner == s.Owner)
}

// find returns the hits in one session, the newest first.
func (i *indexed) find(q *search.Query, terms []search.Term, s *tapedeck.Session) []search.Hit {
	var out []search.Hit
	for _, d := range slices.Backward(i.docs) {
		if q.Kind != "" && q.Kind != d.Kind || q.Role != "" && q.Role != d.Role ||
			!q.From.IsZero() && d.Time.Before(q.From) || !q.To.IsZero() && !d.Time.Before(q.To) {
			continue
		}
		snippet, ok := search.Match(d.Text, terms)
		if ok {
			out = append(out, search.Hit{
				Session: s.ID, Title: s.Title, Offset: d.Offset, Thread: d.Thread, Invocation: d.Invocation,
				Kind: d.Kind, Role: d.Role, Snippet: snippet, Time: d.Time,
			})
		}
	}
	return out
}
