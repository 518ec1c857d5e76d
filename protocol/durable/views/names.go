package views

import (
	"context"
	"maps"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/view"
)

// The names of a thread are learned again at each multiple of namesEvery, from the newest
// messages that the view has in memory: so they depend only on the log, and a reader that
// begins in the middle reads few events to know them.
const namesEvery = 4096

// maxNames is the size of the names that a fold keeps, in bytes.
const maxNames = 512 << 10

// names has the ids of the messages and calls of a session, by thread. It has a thread only
// from the first event on for which an id is needed.
type names struct {
	Source
	session string
	threads map[string]*threadNames
}

type threadNames struct {
	aguiwire.Naming
	from int64 // the offset at which they were learned
}

func newNames(from Source, session string) names {
	return names{from, session, map[string]*threadNames{}}
}

// size returns about how many bytes it takes.
func (n *names) size() (size int) {
	for thread, t := range n.threads {
		size += len(thread) + t.Size()
	}
	return size
}

// before returns the names of the thread of e, as of before e.
func (n *names) before(ctx context.Context, e *tapedeck.Event) (*aguiwire.Naming, error) {
	thread, floor := e.ThreadName(), e.Offset/namesEvery*namesEvery
	if t := n.threads[thread]; t != nil && t.from >= floor {
		return &t.Naming, nil
	}
	from, missed, err := n.missed(ctx, e, floor)
	if err != nil {
		return nil, err
	}
	return n.learn(ctx, thread, from, missed)
}

// learn learns the names of a thread as of an offset, and notes what came after.
func (n *names) learn(ctx context.Context, thread string, at int64, then []tapedeck.Event) (*aguiwire.Naming, error) {
	t := &threadNames{aguiwire.NewNaming(), at}
	if at > 0 {
		s, err := n.Views.Snapshot(ctx, n.session, view.Query{At: new(at), Thread: thread, Limit: view.Window})
		if err != nil {
			return nil, err
		}
		t.Learn(&s, aguiwire.OpenRun(&s))
	}
	for i := range then {
		t.Note(&then[i])
	}
	if n.size() > maxNames {
		clear(n.threads)
	}
	n.threads[thread] = t
	return &t.Naming, nil
}

// missed returns the events of the thread of e before e, and where they begin: at floor, or
// after the newest event at which the names are learned again.
func (n *names) missed(ctx context.Context, e *tapedeck.Event, floor int64) (from int64, list []tapedeck.Event, err error) {
	from = floor
	for next := floor; next < e.Offset; {
		p, err := n.Log.Read(ctx, n.session, tapedeck.Range{From: next, Limit: int(e.Offset - next)})
		if err != nil || len(p.Records) == 0 {
			return from, list, err
		}
		for _, r := range p.Records {
			b, err := r.Event()
			switch {
			case err != nil:
				return from, nil, err
			case renews(&b, e.ThreadName()):
				from, list = b.Offset+1, nil
			case b.ThreadName() == e.ThreadName():
				list = append(list, b)
			}
		}
		next = p.Next
	}
	return from, list, nil
}

// renews reports whether only the view knows what a thread has after an event.
func renews(e *tapedeck.Event, thread string) bool {
	j, ok := e.Jump()
	return ok && j.Reverts(thread) || e.Type == tapedeck.MessagesSnapshot && e.ThreadName() == thread
}

// note notes an event, and returns it with the ids of its messages and calls. Only if it is
// shown does the names of its thread have to be known.
func (n *names) note(ctx context.Context, e *tapedeck.Event, shown bool) (named *tapedeck.Event, t *aguiwire.Naming, err error) {
	if e.Type == tapedeck.MessagesSnapshot {
		if t, err = n.learn(ctx, e.ThreadName(), e.Offset+1, nil); err == nil {
			named = t.Restate(e)
		}
		return named, t, err
	}
	known := n.threads[e.ThreadName()]
	if !shown && (known == nil || known.from < e.Offset/namesEvery*namesEvery) {
		delete(n.threads, e.ThreadName())
		return e, nil, nil
	}
	if t, err = n.before(ctx, e); err == nil {
		named = t.Note(e)
	}
	return named, t, err
}

// jump forgets the names of the threads that a jump reverts.
func (n *names) jump(e *tapedeck.Event) {
	j, _ := e.Jump()
	maps.DeleteFunc(n.threads, func(thread string, _ *threadNames) bool { return j.Reverts(thread) })
}

// namesOf returns the ids of a conversation of several threads, as [names] finds them.
func namesOf(s *view.Snapshot) map[string]aguiwire.Names {
	threads := map[string]*view.Snapshot{}
	of := func(thread string) *view.Snapshot {
		if threads[thread] == nil {
			threads[thread] = new(view.Snapshot)
		}
		return threads[thread]
	}
	for i := range s.Messages {
		t := of(s.Messages[i].Thread)
		t.Messages = append(t.Messages, s.Messages[i])
	}
	for i := range s.Calls {
		t := of(s.Calls[i].Thread)
		t.Calls = append(t.Calls, s.Calls[i])
	}
	names := map[string]aguiwire.Names{}
	for thread, t := range threads {
		names[thread] = aguiwire.NamesOf(t)
	}
	return names
}
