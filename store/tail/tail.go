// Package tail keeps the newest records of the sessions that are being written
// in memory, as they were encoded when they were appended, so that a thousand
// followers at the head read the same bytes and no database.
//
// A [Cache] observes the commits of a store and is a layer over that store. It
// belongs above a store that has one writing process, such as store/sqlite:
// commits of another process would pass it by.
package tail

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
)

// A Cache holds the newest records of many sessions, within a budget. The
// session that was neither written to nor read for the longest time goes first.
type Cache struct {
	budget int64

	held sync.Map // *held by session id

	mu     sync.Mutex // of what follows; readers do not take it
	size   int64
	recent list.List // of *held, the one written to last at the front
}

// New returns a cache that holds at most about maxBytes.
func New(maxBytes int64) *Cache { return &Cache{budget: maxBytes} }

// A held session. Readers take what is there when they come; only commits
// change it, one at a time.
type held struct {
	window  atomic.Pointer[window]
	read    atomic.Bool // since the last time room was made
	size    int64
	element *list.Element
}

// A window is a session as of one commit with its newest records. It never
// changes; windows of one session share the memory of their records.
type window struct {
	session tapedeck.Session
	records []tapedeck.Record // up to the head, without a gap
}

// first returns the offset of the oldest record held, or the head.
func (w *window) first() int64 { return w.session.Head - int64(len(w.records)) }

// What things cost beside the bytes of the records: an entry with its map and
// list elements, and the header of a record.
const (
	sessionCost = 1024
	recordCost  = 32
)

func cost(records []tapedeck.Record) int64 {
	n := int64(0)
	for _, r := range records {
		n += int64(cap(r.Data)) + recordCost
	}
	return n
}

// committed adds what a commit appended, and drops the sessions of which it erased
// or deleted something.
func (c *Cache) committed(commits []tapedeck.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range commits {
		c.take(&commits[i])
	}
	c.makeRoom()
}

func (c *Cache) take(m *tapedeck.Commit) {
	v, _ := c.held.Load(m.Session.ID)
	h, _ := v.(*held)
	if m.Gone || !m.Session.Expires.IsZero() || m.Session.TTL > 0 {
		// What can expire is not answered for: that is up to the store's clock.
		c.drop(m.Session.ID, h)
		return
	}
	if m.Erased { // forks need no such care: what they inherit is not held
		c.drop(m.Session.ID, h)
		h = nil
	}
	next := &window{session: m.Session}
	known := h != nil
	if !known {
		h = &held{size: sessionCost}
		h.element = c.recent.PushFront(h)
		c.size += h.size
	} else {
		c.recent.MoveToFront(h.element)
		if old := h.window.Load(); old.session.Gen == m.Session.Gen && old.session.Head+int64(len(m.Records)) == m.Session.Head {
			next.records = old.records
		} else { // it is another one, or something passed us by
			c.resize(h, sessionCost)
		}
	}
	next.records = append(next.records, m.Records...)
	c.resize(h, h.size+cost(m.Records))
	c.trim(h, next)
	h.window.Store(next)
	if !known {
		c.held.Store(m.Session.ID, h)
	}
}

func (c *Cache) resize(h *held, size int64) {
	c.size += size - h.size
	h.size = size
}

func (c *Cache) drop(id string, h *held) {
	if h != nil {
		c.held.Delete(id)
		c.recent.Remove(h.element)
		c.size -= h.size
	}
}

// trim cuts the oldest records off a session that takes more than its share, an
// eighth of the budget, and leaves it half of that: so it is not done at every
// commit. The rest moves to new memory, as the old is held by what was cut off.
func (c *Cache) trim(h *held, w *window) {
	if h.size-sessionCost <= c.budget/8 {
		return
	}
	size, n := int64(sessionCost), len(w.records)
	for n > 0 && size <= c.budget/16 {
		n--
		size += cost(w.records[n : n+1])
	}
	w.records = append([]tapedeck.Record(nil), w.records[n:]...)
	c.resize(h, size)
}

// makeRoom drops the sessions that were used last the longest ago until the
// budget is kept. One that was read since it got to the end of the list goes
// to its front again, once.
func (c *Cache) makeRoom() {
	for spared := c.recent.Len(); c.size > c.budget && c.recent.Len() > 0; {
		last := c.recent.Back()
		h := last.Value.(*held)
		if spared > 0 && h.read.Swap(false) {
			spared--
			c.recent.MoveToFront(last)
			continue
		}
		c.drop(h.window.Load().session.ID, h)
	}
}

// window returns what is held of a session, nil for nothing.
func (c *Cache) window(session string) *window {
	v, ok := c.held.Load(session)
	if !ok {
		return nil
	}
	h := v.(*held)
	if !h.read.Load() { // so that many readers do not fight for the memory
		h.read.Store(true)
	}
	return h.window.Load()
}

// clear lets go of everything.
func (c *Cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.Clear()
	c.recent.Init()
	c.size = 0
}
