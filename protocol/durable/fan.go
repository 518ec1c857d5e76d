package durable

import (
	"sync"

	"github.com/tapedeck/tapedeck"
)

// maxShared is the size of the largest page of which the frame is kept for
// others. Live pages are far smaller.
const maxShared = 256 << 10

// A fan is the subscribers of one stream in one form. Those who are at the same
// position get the same bytes: what is appended is encoded once, however many
// there are.
type fan struct {
	key         fanKey
	subscribers int // guarded by fans.mu

	mu     sync.Mutex
	frames [8]frame // the newest; more than one, for a few are always a step behind
	newest int
}

type fanKey struct {
	gen    int64 // which also tells the content type
	view   string
	filter string
}

// A frame is an encoded page at the tail.
type frame struct {
	at, next offset
	head     int64
	cursor   int64
	closed   bool
	empty    bool // see page.empty
	tail     bool // see page.tail
	bytes    []byte
}

// frame returns the frame of p for position at, and builds it if nobody has.
// Meanwhile others who want it wait rather than build it too.
func (f *fan) frame(at offset, p tapedeck.Page, cursor int64, build func() (frame, error)) (frame, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.frames {
		have := &f.frames[i]
		if have.at == at && have.head == p.Head && have.cursor == cursor && have.closed == p.Closed && have.bytes != nil {
			return *have, nil
		}
	}
	made, err := build()
	if err != nil {
		return made, err
	}
	made.at, made.head, made.cursor, made.closed = at, p.Head, cursor, p.Closed
	f.newest = (f.newest + 1) % len(f.frames)
	f.frames[f.newest] = made
	return made, nil
}

// fans knows the fan of each stream that has subscribers.
type fans struct {
	mu sync.Mutex
	of map[fanKey]*fan
}

func (fs *fans) enter(rd *reading) *fan {
	key := fanKey{rd.session.Gen, rd.view, rd.filter.String()}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.of[key]
	if f == nil {
		f = &fan{key: key}
		fs.of[key] = f
	}
	f.subscribers++
	return f
}

func (fs *fans) leave(f *fan) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.subscribers--; f.subscribers == 0 {
		delete(fs.of, f.key)
	}
}
