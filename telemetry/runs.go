package telemetry

import (
	"context"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
)

// maxEnded is how many runs may wait for their spans.
const maxEnded = 10_000

// An ended run waits for its spans. Those of the runs that it started are made with it.
type ended struct {
	session    string
	gen        int64
	invocation string
	from, to   int64 // the events with the run
}

// Observer returns the observer of the store.
func (t *Tracer) Observer() tapedeck.Observer {
	return tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for i := range commits {
			if c := &commits[i]; len(c.Session.Runs) > 0 || len(t.open[c.Session.Gen]) > 0 {
				t.committed(&c.Session, c.Gone)
			}
		}
	}}
}

// committed notes which runs of a session are open now, and which have ended. A run that
// begins and ends in one commit, such as an imported one, has no spans.
func (t *Tracer) committed(s *tapedeck.Session, removed bool) {
	if removed {
		delete(t.open, s.Gen)
		return
	}
	for _, run := range t.open[s.Gen] {
		isOpen := slices.ContainsFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == run.Invocation })
		if isOpen || run.Parent != "" {
			continue
		}
		if len(t.ended) >= maxEnded {
			t.lost++
			continue
		}
		t.ended = append(t.ended, ended{s.ID, s.Gen, run.Invocation, run.Offset, s.Head})
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	if len(s.Runs) == 0 {
		delete(t.open, s.Gen)
		return
	}
	t.open[s.Gen] = s.Runs
}

// Load reads which runs are open at the start of the server. Call it before the first
// append.
func (t *Tracer) Load(ctx context.Context) error {
	for f := (tapedeck.Filter{OpenRun: true, Limit: 1000}); ; {
		page, err := t.Log.List(ctx, f)
		if err != nil {
			return err
		}
		t.mu.Lock()
		for i := range page.Sessions {
			t.open[page.Sessions[i].Gen] = page.Sessions[i].Runs
		}
		t.mu.Unlock()
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil
		}
	}
}

// Run makes the spans of runs that end, until ctx is done. [Tracer.Flush] makes those of
// the rest.
func (t *Tracer) Run(ctx context.Context) {
	for {
		select {
		case <-t.wake:
			t.Flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Flush makes the spans of all runs that have ended. When ctx is done it leaves the rest
// for another call.
func (t *Tracer) Flush(ctx context.Context) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		t.mu.Lock()
		batch, lost := t.ended, t.lost
		t.ended, t.lost = nil, 0
		t.mu.Unlock()
		if lost > 0 {
			t.Logger.Warn("more runs ended than spans could be made for; some runs have none", "runs", lost)
		}
		if len(batch) == 0 {
			return
		}
		for i, e := range batch {
			if ctx.Err() != nil { // another call makes the rest
				t.mu.Lock()
				t.ended = append(slices.Clone(batch[i:]), t.ended...)
				t.mu.Unlock()
				return
			}
			if err := t.spans(ctx, e); err != nil && tapedeck.KindOf(err) != tapedeck.NotFound && tapedeck.KindOf(err) != tapedeck.Gone {
				t.Logger.Warn("a run has no whole spans, because its events cannot be read", "session", e.session, "invocation", e.invocation, "error", err)
			}
		}
	}
}

// spans makes the spans of a run and of those that it started. It makes all or none: ctx
// only limits how long it waits for the exporter.
func (t *Tracer) spans(ctx context.Context, e ended) error {
	f := &fold{t: t, ctx: ctx, session: e.session, root: e.invocation, runs: map[string]*run{}}
	defer f.close()
	for from := e.from; from < e.to; {
		page, err := t.Log.Read(context.WithoutCancel(ctx), e.session, tapedeck.Range{From: from, Limit: int(min(e.to-from, tapedeck.DefaultLimit))})
		if err != nil {
			return err
		}
		if page.Gen != 0 && page.Gen != e.gen { // the session was deleted and recreated
			return nil
		}
		for _, r := range page.Records {
			ev, err := r.Event()
			if err != nil {
				return err
			}
			f.add(&ev)
		}
		if page.Next <= from {
			return nil
		}
		from = page.Next
	}
	return nil
}

// flushEvery is how many spans are made before the exporter must have them. Its queue
// drops what it has no space for, and the default size of that is 2048.
const flushEvery = 512

// made says that a span was made.
func (f *fold) made() {
	if f.count++; f.count%flushEvery != 0 {
		return
	}
	if p, ok := f.t.Provider.(interface{ ForceFlush(context.Context) error }); ok {
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		defer cancel()
		if err := p.ForceFlush(ctx); err != nil {
			f.t.Logger.Debug("spans could not be sent yet", "error", err)
		}
	}
}
