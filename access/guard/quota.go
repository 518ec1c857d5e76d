package guard

import (
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/quota"
	"github.com/tapedeck/tapedeck/api"
)

// keyOf returns the account of an identity.
func keyOf(i *access.Identity) quota.Key {
	return quota.Key{Subject: cmp.Or(i.Payer, i.Subject), Role: i.Role}
}

// take takes what an identity sends from its quota.
func (g *Guard) take(i *access.Identity, events int, bytes int64) error {
	if g.quotas == nil || i == access.System {
		return nil
	}
	return g.quotas.Take(keyOf(i), events, bytes)
}

// charge takes what an identity has sent, after it was carried out.
func (g *Guard) charge(i *access.Identity, events int, bytes int64) {
	if g.quotas != nil && i != access.System {
		g.quotas.Charge(keyOf(i), events, bytes)
	}
}

// takeAppend takes an append from the quota of an identity.
func (g *Guard) takeAppend(i *access.Identity, a *tapedeck.Append) error {
	if g.quotas == nil {
		return nil
	}
	size := int64(0)
	for n := range a.Events {
		size += int64(len(a.Events[n].Data))
	}
	for _, c := range a.Chunks {
		size += int64(len(c))
	}
	return g.take(i, len(a.Events)+len(a.Chunks), size)
}

// open counts a stream of an identity until closed is called.
func (g *Guard) open(i *access.Identity) (closed func(), err error) {
	if g.quotas == nil || i == access.System {
		return func() {}, nil
	}
	return g.quotas.Open(keyOf(i))
}

// found counts a session that is about to be created for an owner until done is called.
func (g *Guard) found(ctx context.Context, i *access.Identity, owner string) (done func(), err error) {
	if g.quotas == nil {
		return func() {}, nil
	}
	k := quota.Key{Subject: owner, Role: i.Role}
	limit := g.quotas.Limits(k).Sessions
	if limit == 0 {
		return func() {}, nil
	}
	count, done := g.quotas.Creating(k)
	err = g.each(ctx, tapedeck.Filter{Owner: owner}, func(*tapedeck.Session) bool { count++; return count <= limit })
	if err == nil && count > limit {
		err = tapedeck.Errorf(tapedeck.Limited, "%s has %d sessions, and no more are allowed", owner, limit).WithHint("delete some")
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// pageOfOwner is how many sessions are read at once to count them.
const pageOfOwner = 1000

// each calls f for the sessions that pass a filter until it returns false.
func (g *Guard) each(ctx context.Context, f tapedeck.Filter, use func(*tapedeck.Session) bool) error {
	f.Limit = pageOfOwner
	for {
		page, err := g.store.List(ctx, f)
		if err != nil {
			return err
		}
		for n := range page.Sessions {
			if !use(&page.Sessions[n]) {
				return nil
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil
		}
	}
}

// beginnings are the runs of each owner that were started and are perhaps not in the
// catalogue yet, by their ids. The value is true once the call that starts the run has
// returned.
type beginnings struct {
	mu      sync.Mutex
	byOwner map[string]map[string]bool
}

func newBeginnings() *beginnings { return &beginnings{byOwner: map[string]map[string]bool{}} }

// begin counts a run that is about to be started under an id in a session of an owner. Call
// begun with the result.
func (g *Guard) begin(ctx context.Context, i *access.Identity, owner, invocation string) (begun func(*api.Started, error), err error) {
	if g.quotas == nil {
		return func(*api.Started, error) {}, nil
	}
	limit := g.quotas.Limits(quota.Key{Subject: owner, Role: i.Role}).Runs
	if limit == 0 {
		return func(*api.Started, error) {}, nil
	}
	b := g.beginnings
	b.mu.Lock()
	defer b.mu.Unlock()
	count, err := g.countRuns(ctx, owner)
	if err != nil {
		return nil, err
	}
	if count >= limit {
		return nil, tapedeck.Errorf(tapedeck.Limited, "%s has %d runs that are open or wait, and no more are allowed", owner, count).WithHint("wait for the end of one, or cancel it")
	}
	if b.byOwner[owner] == nil {
		b.byOwner[owner] = map[string]bool{}
	}
	b.byOwner[owner][invocation] = false
	return func(s *api.Started, err error) { b.begun(owner, invocation, s, err) }, nil
}

// begun notes what became of a call.
func (b *beginnings) begun(owner, invocation string, s *api.Started, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && s.Invocation == invocation && s.Input == "" {
		b.byOwner[owner][invocation] = true
		return
	}
	delete(b.byOwner[owner], invocation)
}

// countRuns counts the runs that are open or wait in the sessions of an owner, and forgets
// the beginnings that have ended. The caller has the lock of the beginnings. An input counts
// twice until the call that queues it has returned.
func (g *Guard) countRuns(ctx context.Context, owner string) (int, error) {
	runs := map[string]bool{}
	for id, returned := range g.beginnings.byOwner[owner] {
		if returned && !g.drives(id) {
			delete(g.beginnings.byOwner[owner], id)
			continue
		}
		runs[id] = true
	}
	if len(g.beginnings.byOwner[owner]) == 0 {
		delete(g.beginnings.byOwner, owner)
	}
	err := g.each(ctx, tapedeck.Filter{Owner: owner, OpenRun: true}, func(s *tapedeck.Session) bool {
		for _, r := range s.Runs {
			if r.Parent == "" { // that of a sub-agent is a part of another one
				runs[r.Invocation] = true
			}
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	n := len(runs)
	return n, g.each(ctx, tapedeck.Filter{Owner: owner, Inputs: true}, func(s *tapedeck.Session) bool {
		for i := range s.Inputs {
			if !s.Inputs[i].Outside {
				n++
			}
		}
		return true
	})
}

// start gives an agent a task in a session of an owner.
func (v *Guarded) start(ctx context.Context, i *access.Identity, owner string, t api.Task) (api.Started, error) {
	if err := v.g.take(i, 1, int64(len(t.Text)+len(t.Config))); err != nil {
		return api.Started{}, err
	}
	if t.Invocation == "" {
		t.Invocation = tapedeck.NewID("inv_")
	}
	begun, err := v.g.begin(ctx, i, owner, t.Invocation)
	if err != nil {
		return api.Started{}, err
	}
	out, err := v.verbs.Start(ctx, t)
	begun(&out, err)
	return out, err
}

// ownerOf returns the owner of a session.
func (g *Guard) ownerOf(ctx context.Context, session string) (string, error) {
	if g.quotas == nil {
		return "", nil
	}
	s, err := g.entry(ctx, session)
	return s.Owner, err
}

// A counting counts the bytes that are read.
type counting struct {
	io.Reader
	n int64
}

// Read implements [io.Reader].
func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}
