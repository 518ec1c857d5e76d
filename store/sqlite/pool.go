package sqlite

import "context"

// A pool lends the connections that read. They cannot write.
type pool struct {
	free chan *conn
	quit chan struct{}
	size int
}

func newPool(file string, size int) (*pool, error) {
	p := &pool{free: make(chan *conn, size), quit: make(chan struct{})}
	for range size {
		c, err := dial(dataSource(file, "ro", readerPragmas))
		if err != nil {
			p.close()
			return nil, err
		}
		p.free <- c
		p.size++
	}
	return p, nil
}

// use lends a connection to f. Errors of the database are put into words.
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

// each calls f with every connection, before any is lent.
func (p *pool) each(f func(*conn)) {
	for range p.size {
		c := <-p.free
		f(c)
		p.free <- c
	}
}

// pause calls f while nobody reads. Reads that come meanwhile wait.
func (p *pool) pause(f func()) {
	var all []*conn
	for range p.size {
		all = append(all, <-p.free)
	}
	defer func() {
		for _, c := range all {
			p.free <- c
		}
	}()
	f()
}

// close waits for reads under way.
func (p *pool) close() {
	close(p.quit)
	for range p.size {
		_ = (<-p.free).close() // that of a connection that only reads loses nothing
	}
}
