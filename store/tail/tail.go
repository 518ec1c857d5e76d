// Package tail keeps the newest records of recently written sessions in memory, as
// they were encoded when they were appended. So a thousand followers at the head read
// the same bytes, without the database.
//
// A [Cache] observes the commits of a store and is a layer over that store. The
// store must have a single writing process, as store/sqlite has: the cache would miss
// the commits of another process.
package tail

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
)

// A Cache holds the newest records of many sessions, within a budget. When that is
// exceeded, it drops the session that was not written or read for the longest time.
type Cache struct {
	budget int64

	held sync.Map // *held by session id

	hits, misses atomic.Int64 // reads that the cache answered, and those that it could not

	mu     sync.Mutex // guards the fields below; readers do not take it
	size   int64
	recent list.List // of *held, the newest write at the front
}

// New returns a cache that holds at most about maxBytes.
func New(maxBytes int64) *Cache { return &Cache{budget: maxBytes} }

// Figures returns the memory that the cache takes, in bytes, and how many reads it has
// answered and how many it could not answer.
func (c *Cache) Figures() (bytes, hits, misses int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size, c.hits.Load(), c.misses.Load()
}

// held is a session in the cache. Readers load its window; only commits replace it,
// one at a time.
type held struct {
	window  atomic.Pointer[window]
	read    atomic.Bool // it was read since makeRoom looked at it
	size    int64
	element *list.Element
}

// A window is a session as of one commit with its newest records. It is immutable.
// The windows of a session share the memory of their records.
type window struct {
	session tapedeck.Session
	records []tapedeck.Record // up to the head, without a gap
}

// first returns the offset of the oldest record in the window, or the head.
func (w *window) first() int64 { return w.session.Head - int64(len(w.records)) }

// Memory in bytes, besides the data of the records.
const (
	sessionCost = 1024 // a session, with its elements of the map and the list
	recordCost  = 32   // the header of a record
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
		// A session that can expire is not cached, because only the store knows when.
		c.drop(m.Session.ID, h)
		return
	}
	if m.Erased { // forks need not be dropped: the records that they inherit are not cached
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
		} else { // the session was recreated, or the cache missed a commit
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

// trim drops the oldest records of a session that takes more than an eighth of the
// budget. It keeps half of that, so that it does not trim at every commit. It copies
// the kept records, because the old slice would keep the dropped ones in memory.
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

// makeRoom drops the sessions at the end of the list until the cache is within its
// budget. A session that was read since the last look moves to the front instead.
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

// window returns the window of a session, nil if it is not in the cache.
func (c *Cache) window(session string) *window {
	v, ok := c.held.Load(session)
	if !ok {
		return nil
	}
	h := v.(*held)
	if !h.read.Load() { // write the flag only if it is false: many readers share its cache line
		h.read.Store(true)
	}
	return h.window.Load()
}

// clear drops all sessions.
func (c *Cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.Clear()
	c.recent.Init()
	c.size = 0
}
