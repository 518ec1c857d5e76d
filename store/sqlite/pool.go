package sqlite

import (
	"context"
	"sync"
	"time"
)

// A pool lends connections.
type pool struct {
	free   chan *conn
	quit   chan struct{}
	size   int
	closed bool // guarded by pauses.mu
}

// newPool opens connections to a data source.
func newPool(size int, source string) (*pool, error) {
	p := &pool{free: make(chan *conn, size), quit: make(chan struct{})}
	for range size {
		c, err := dial(source)
		if err != nil {
			new(pauses).close(p)
			return nil, err
		}
		p.free <- c
		p.size++
	}
	return p, nil
}

// use lends a connection to f. It turns errors of the database into errors for
// users. f must not wait for another connection or for a lock.
func (p *pool) use(ctx context.Context, f func(*conn) error) error {
	select {
	case <-p.quit:
		return errClosed()
	default:
	}
	select {
	case c := <-p.free:
		defer func() { p.free <- c }()
		return unread(f(c))
	case <-p.quit:
		return errClosed()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// each calls f with every connection. It must be called before the pool is used.
func (p *pool) each(f func(*conn)) {
	for range p.size {
		c := <-p.free
		f(c)
		p.free <- c
	}
}

// maxPause is how long a pause waits for reads in progress.
const maxPause = 2 * time.Second

// pauses owns every pause of the pools of a store. Only one pause takes
// connections at a time: two of them would each hold a part and wait for the
// rest forever. The order of all locks is in docs/design/0014.
type pauses struct{ mu sync.Mutex }

// during calls f while no connection of the pools is lent. Reads that begin
// meanwhile wait. It reports false, and does not call f, if a read takes too long.
// A pool may be nil or closed: then it has no readers.
func (ps *pauses) during(f func(), pools ...*pool) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	patience := time.NewTimer(maxPause)
	defer patience.Stop()
	for _, p := range pools {
		if p == nil || p.closed {
			continue
		}
		for range p.size {
			select {
			case c := <-p.free:
				defer func() { p.free <- c }()
			case <-patience.C:
				return false
			}
		}
	}
	f()
	return true
}

// close closes the connections of a pool as they are returned.
func (ps *pauses) close(p *pool) {
	close(p.quit)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for range p.size {
		_ = (<-p.free).close() // its error does not matter: the connection has only read
	}
	p.closed = true
}
