package shards

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
)

// An Index joins the search indexes of the shards. The suite in store/storetest is its
// contract.
type Index struct{ store *Store }

// Index returns the search index of the store.
func (s *Store) Index() *Index { return &Index{s} }

// Unindexed returns the sessions with events that are not indexed, newest first. It leaves
// out a shard that does not answer, so that the others are indexed meanwhile.
func (x *Index) Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error) {
	s := x.store
	found, totals := make([][]search.Pending, len(s.shards)), make([]int, len(s.shards))
	errs := each(s, func(i int) (err error) {
		found[i], totals[i], err = s.shards[i].Index.Unindexed(ctx, limit)
		return err
	})
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	answered := false
	var out []search.Pending
	total := 0
	for i, err := range errs {
		switch {
		case err == nil:
			answered, out, total = true, append(out, found[i]...), total+totals[i]
		case tapedeck.KindOf(err) != tapedeck.Unavailable:
			return nil, 0, err
		}
	}
	if !answered {
		return nil, 0, errs[0]
	}
	slices.SortFunc(out, func(a, b search.Pending) int { return cmp.Compare(b.Gen, a.Gen) })
	return out[:min(len(out), max(limit, 0))], total, nil
}

// Index adds documents to the index of the session's shard.
func (x *Index) Index(ctx context.Context, in search.Batch) error {
	if err := ctx.Err(); err != nil || !x.store.holds(in.Gen) {
		return err
	}
	return x.store.shards[shardOf(in.Gen)].Index.Index(ctx, in)
}

// Forget removes the documents of a session.
func (x *Index) Forget(ctx context.Context, session string) error {
	at, err := x.store.find(ctx, session)
	if err != nil {
		return err
	}
	return x.store.shards[at].Index.Forget(ctx, session)
}

// Clean removes what is left of removed documents.
func (x *Index) Clean(ctx context.Context) error {
	return x.store.every(ctx, "", func(i int) error { return x.store.shards[i].Index.Clean(ctx) })
}

// Search finds documents in all shards, the best matches first. A rank depends only on the
// document and the query, so those of different shards can be compared.
func (x *Index) Search(ctx context.Context, q search.Query) (search.Result, error) {
	s := x.store
	skips, err := parseSkips(q.Cursor, len(s.shards))
	if err != nil {
		return search.Result{}, err
	}
	parts := make([]ranked, len(s.shards))
	err = s.every(ctx, "the search would not have all hits", func(i int) (err error) {
		parts[i].hits, parts[i].next, err = s.shards[i].Index.Ranked(ctx, q, skips[i])
		return err
	})
	if err != nil {
		return search.Result{}, err
	}
	return joinHits(parts, skips, max(1, q.Limit)), nil
}

// ranked are the hits of one shard.
type ranked struct {
	hits []search.Ranked
	next int // see [Shard]; 0 if there are no more
}

// joinHits takes the best hits of all shards. Where a shard has more hits than it was asked
// for, the page ends with the last one that is known: the next ones may be better than those
// of the others.
func joinHits(parts []ranked, skips []int, limit int) search.Result {
	out := search.Result{Hits: []search.Hit{}}
	more := false
	for len(out.Hits) < limit {
		best := -1
		for i := range parts {
			if len(parts[i].hits) > 0 && (best < 0 || isBetter(&parts[i].hits[0], &parts[best].hits[0])) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		p := &parts[best]
		out.Hits, skips[best] = append(out.Hits, p.hits[0].Hit), p.hits[0].Skip
		if p.hits = p.hits[1:]; len(p.hits) == 0 && p.next > 0 {
			break
		}
	}
	for i := range parts {
		if p := &parts[i]; len(p.hits) == 0 && p.next > 0 {
			skips[i] = p.next
		}
		more = more || len(parts[i].hits) > 0 || parts[i].next > 0
	}
	if more {
		out.Next = formatSkips(skips)
	}
	return out
}

func isBetter(a, b *search.Ranked) bool {
	return cmp.Or(cmp.Compare(b.Rank, a.Rank), b.Time.Compare(a.Time)) < 0
}

// A cursor has how many hits of each shard come before the page.
func formatSkips(skips []int) string {
	parts := make([]string, len(skips))
	for i, n := range skips {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, "-")
}

func parseSkips(cursor string, n int) ([]int, error) {
	skips := make([]int, n)
	if cursor == "" {
		return skips, nil
	}
	parts := strings.Split(cursor, "-")
	for i := range parts {
		skip, err := strconv.ParseUint(parts[i], 10, 31)
		if err != nil || len(parts) != n {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the cursor %.400q was not issued by this search", cursor)
		}
		skips[i] = int(skip)
	}
	return skips, nil
}
