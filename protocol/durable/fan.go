package durable

import (
	"bytes"
	"context"
	"sync"

	"github.com/tapedeck/tapedeck"
)

// A fan is the subscribers of one stream in one form. Those who are at the same
// position get the same bytes: what is appended is encoded once, however many
// there are.
type fan struct {
	key         fanKey
	subscribers int // guarded by fans.mu

	mu     sync.Mutex
	frames [4]frame // the newest; more than one, for a few are always a step behind
	newest int
}

type fanKey struct {
	gen    int64 // which also tells the content type
	view   string
	filter string
}

// maxShared is the size of the largest page whose frame is kept for others.
// Live pages are far smaller.
const maxShared = 64 << 10

// A frame is an encoded page at the tail.
type frame struct {
	frameKey
	next   offset
	tail   bool
	empty  bool   // see page.empty
	cursor int64  // in the control event
	data   int    // where in bytes the control event begins
	bytes  []byte // nil: there is no frame
}

// A frameKey says of what a frame is made.
type frameKey struct {
	at     offset
	head   int64
	closed bool
	epoch  string // see [reading.epoch]
}

// frame returns the frame of p for where s is. If there is none it is made;
// meanwhile others who want it wait rather than do the same.
func (f *fan) frame(ctx context.Context, s *subscriber, p tapedeck.Page) (frame, error) {
	key := frameKey{s.at, p.Head, p.Closed, s.h.epoch(s.rd)}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.frames {
		if f.frames[i].frameKey == key && f.frames[i].bytes != nil {
			return f.frames[i], nil
		}
	}
	part, err := s.h.next(ctx, s.at, s.rd, p)
	if err != nil {
		return frame{}, err
	}
	made := frame{
		frameKey: key, next: part.next, tail: part.tail, empty: part.empty(), cursor: cursorAt(s.h.Now()),
	}
	b := bytes.NewBuffer(make([]byte, 0, s.rd.frameSize(&part)))
	s.rd.encodeData(b, &part)
	made.data, made.bytes = b.Len(), appendControl(b.Bytes(), &part, made.cursor)
	if key.epoch == s.rd.epoch { // else it may hold what was erased since it was read
		f.newest = (f.newest + 1) % len(f.frames)
		f.frames[f.newest] = made
	}
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
