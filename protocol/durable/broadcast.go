package durable

import (
	"bytes"
	"context"
	"sync"

	"github.com/tapedeck/tapedeck"
)

// A broadcast has the subscribers of one stream in one form. Subscribers at the same
// offset get the same bytes: an append is encoded once for all of them.
type broadcast struct {
	key         broadcastKey
	subscribers int // guarded by broadcasts.mu

	mu     sync.Mutex
	frames [4]frame // the newest; several, because some subscribers are a step behind
	newest int
}

// A broadcastKey names a stream in one form.
type broadcastKey struct {
	gen    int64 // the incarnation of the stream, which also determines the content type
	view   string
	filter string
}

// maxShared is the size of the largest page whose frame is kept for other subscribers.
// Live pages are much smaller.
const maxShared = 64 << 10

// A frame is an encoded page at the tail.
type frame struct {
	frameKey
	next   offset
	tail   bool
	empty  bool   // see page.empty
	cursor int64  // of the control event
	data   int    // the index in bytes at which the control event begins
	bytes  []byte // nil: there is no frame
}

// A frameKey identifies the contents of a frame.
type frameKey struct {
	at     offset
	head   int64
	closed bool
	epoch  string // see [reading.epoch]
}

// frame returns the frame of p for the offset of s, and encodes it if there is none.
// Meanwhile other subscribers wait for it.
func (f *broadcast) frame(ctx context.Context, s *subscriber, p tapedeck.Page) (frame, error) {
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
	made.data, made.bytes = b.Len(), appendControl(b.Bytes(), &part, s.rd.session.Gen, made.cursor)
	if key.epoch == s.rd.epoch { // otherwise it may have events that were erased since they were read
		f.newest = (f.newest + 1) % len(f.frames)
		f.frames[f.newest] = made
	}
	return made, nil
}

// broadcasts has the broadcast of each stream that has subscribers.
type broadcasts struct {
	mu    sync.Mutex
	byKey map[broadcastKey]*broadcast
}

// enter adds a subscriber. Call leave at its end.
func (bs *broadcasts) enter(rd *reading) *broadcast {
	key := broadcastKey{rd.session.Gen, rd.view, rd.filter.String()}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	f := bs.byKey[key]
	if f == nil {
		f = &broadcast{key: key}
		bs.byKey[key] = f
	}
	f.subscribers++
	return f
}

// leave removes a subscriber.
func (bs *broadcasts) leave(f *broadcast) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if f.subscribers--; f.subscribers == 0 {
		delete(bs.byKey, f.key)
	}
}
