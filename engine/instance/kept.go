package instance

import (
	"context"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/lru"
	"github.com/tapedeck/tapedeck/view"
)

// The limits of a repository's memory.
const (
	maxSessions = 64     // sessions whose contexts are known
	maxCalls    = 20_000 // tool calls in the contexts of one session; more are read again
	maxMissed   = 1000   // events of others after which a context is read again
	maxFound    = 10_000 // instances whose session is known
	maxOpen     = 500    // tool calls of a thread without a result: a view knows few more, see [view.Window]
)

// A kept session has what its writers need to know of its contexts, so that an append does
// not read them again. A caller must hold the session, see [Repository.hold].
type kept struct {
	gen      int64                        // of the session: a recreated session has another one
	next     int64                        // the offset up to which the contexts are known
	contexts map[string]map[string]*known // by thread and instance
}

// A known context is what a writer must know of the context of an instance.
type known struct {
	events   int             // their number
	said     int32           // the number of the newest message; -1 if there is none
	messages int             // the number of messages in its thread
	open     int             // the number of calls in its thread without a result
	calls    map[string]call // its newest call of each id
	ids      map[string]bool // of all calls in its thread, in the log
}

// A call is what a writer must know of a tool call. It has no arguments, which may be large
// and may be erased.
type call struct {
	id            string // in the log
	name          string
	sum           [32]byte // of its tool_call, see [sumOf]
	event, result int32    // the numbers of its tool_call and its tool_result; -1 if there is none
}

// A keeper has the kept sessions.
type keeper struct {
	mu       sync.Mutex
	sessions lru.Map[string, *kept]
	found    lru.Map[string, string] // sessions by instance
}

// session returns what is kept of a session. It begins with nothing if the session is new
// here, or was deleted and created again.
func (k *keeper) session(s *tapedeck.Session) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.sessions.Get(s.ID)
	if !ok || c.gen != s.Gen || c.next > s.Head {
		c = &kept{gen: s.Gen, next: s.Head, contexts: map[string]map[string]*known{}}
		k.sessions.Put(s.ID, c)
		k.sessions.Trim(maxSessions, nil)
	}
	return c
}

// known returns the context of an instance as of the head of its session. Its cost depends
// on what others have appended since the last call, not on the length of the context.
func (r *Repository) known(ctx context.Context, i *found) (*known, *kept, error) {
	s, err := r.log.Head(ctx, i.session)
	if err != nil {
		return nil, nil, err
	}
	c := r.keeper.session(&s)
	if err := r.catchUp(ctx, c, &s); err != nil {
		return nil, nil, err
	}
	if k, ok := c.contexts[i.Thread][i.ID]; ok {
		return k, c, nil
	}
	now, err := r.snapshot(ctx, i, s.Head)
	if err != nil {
		return nil, nil, err
	}
	k := knownFrom(&now, i)
	if c.contexts[i.Thread] == nil {
		c.contexts[i.Thread] = map[string]*known{}
	}
	c.contexts[i.Thread][i.ID] = k
	c.limit()
	return k, c, nil
}

// limit drops all contexts if they have too many calls together.
func (c *kept) limit() {
	calls := 0
	for _, of := range c.contexts {
		for _, k := range of {
			calls += len(k.ids)
		}
	}
	if calls > maxCalls {
		clear(c.contexts)
	}
}

// catchUp drops the contexts of the threads in which others have appended.
func (r *Repository) catchUp(ctx context.Context, c *kept, s *tapedeck.Session) error {
	if s.Head-c.next > maxMissed {
		clear(c.contexts)
		c.next = s.Head
	}
	for c.next < s.Head {
		page, err := r.log.Read(ctx, s.ID, tapedeck.Range{From: c.next, Limit: int(s.Head - c.next)})
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			e, err := rec.Event()
			if err != nil {
				return err
			}
			switch tapedeck.ChannelOf(e.Type) {
			case "", tapedeck.ChannelWorkflow, tapedeck.ChannelTerminal, tapedeck.ChannelPresence: // contexts have none of these
			case tapedeck.ChannelSession: // such as a rewind
				clear(c.contexts)
			default:
				delete(c.contexts, e.ThreadName())
			}
		}
		if page.Next <= c.next {
			return tapedeck.Errorf(tapedeck.Internal, "session %s has nothing at offset %d", s.ID, c.next)
		}
		c.next = page.Next
	}
	return nil
}

func knownFrom(s *view.Snapshot, i *found) *known {
	k := &known{said: -1, messages: len(s.Messages), calls: map[string]call{}, ids: map[string]bool{}}
	began := map[string]int64{} // the offset of the newest call of the context with an id
	for n := range s.Calls {
		one := &s.Calls[n]
		if k.ids[one.ID] = true; one.Result == nil {
			k.open++
		}
		if one.Name != "" && i.Has(&one.Item) {
			id := one.ContextID()
			k.calls[id], began[id] = call{id: one.ID, name: one.Name, event: -1, result: -1}, one.Offset
		}
	}
	events := view.ContextEvents(*s, i.Instance)
	k.events = len(events)
	for n := range events {
		e := &events[n]
		id := e.CallID()
		c := k.calls[id]
		switch {
		case id == "":
			k.said = int32(n)
		case e.Offset < began[id]: // of an older call
		case e.Type == view.CallEvent:
			made := readCall(e.Content)
			c.event, c.sum = int32(n), sumOf(&made.Function)
			k.calls[id] = c
		default:
			c.result = int32(n)
			k.calls[id] = c
		}
	}
	return k
}

// add notes a step that is appended.
func (k *known) add(s *step) {
	number := int32(k.events)
	k.events++
	if !s.made {
		k.messages++
	}
	c := k.calls[s.ToolCallID]
	switch {
	case s.Type == view.ResultEvent:
		c.result = number
		k.calls[s.ToolCallID] = c
		k.open--
		return
	case s.made:
		c.event, c.sum = number, sumOf(&s.calls[0].Function)
		k.calls[s.ToolCallID] = c
		return
	}
	for n := range s.calls {
		f := &s.calls[n].Function
		c := call{id: s.ids[n], name: f.Name, event: -1, result: -1}
		if s.Type == view.CallEvent {
			c.event, c.sum = number, sumOf(f)
		}
		k.calls[s.calls[n].ID], k.ids[c.id] = c, true
	}
	k.open += len(s.calls)
	if s.Type != view.CallEvent {
		k.said = number
	}
}

// appended notes that the events of a context were appended from an offset on, and drops
// the other contexts of the thread.
func (c *kept) appended(i *found, k *known, first, next int64) {
	if c.next == first {
		c.next = next
		c.contexts[i.Thread] = map[string]*known{i.ID: k}
		c.limit()
	} else {
		clear(c.contexts)
	}
}

// sessionOf returns the session in which an instance was found before.
func (k *keeper) sessionOf(id string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.found.Get(id)
}

func (k *keeper) noteFound(id, session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found.Put(id, session)
	k.found.Trim(maxFound, nil)
}
