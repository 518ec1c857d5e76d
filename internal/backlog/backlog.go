// Package backlog writes records to a reader that may be slow. While the reader
// takes them they are in memory. When it stalls they are dropped, and read again
// as it goes on: so a reader that is stuck costs little, however much it has asked
// for.
package backlog

import (
	"bufio"
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/hangup"
)

// worth is the least that is worth dropping.
const worth = 16 << 10

// Records are those that one answer is made of.
type Records struct {
	ctx   context.Context
	again func(offset int64) (tapedeck.Record, error)

	n       int
	list    []tapedeck.Record // nil when they were dropped
	offsets []int64           // then these, unless they are in a row
	first   int64             // and then this one

	skip, size int // of the first record, size 0 for all of it: see [Records.Cut]

	read   tapedeck.Record // again, the last
	readAt int
	watch  bool
	pass   *Pass // of the record that is in memory, if it is large
}

// Of returns the records of list, which the caller lets go of. again reads one
// of them again; without it they are never dropped. Call Done when they are
// written.
func Of(ctx context.Context, list []tapedeck.Record, again func(offset int64) (tapedeck.Record, error)) *Records {
	r := &Records{ctx: ctx, again: again, n: len(list), list: list, readAt: -1}
	if again != nil && larger(list, worth) {
		r.watch = true
		hangup.Stalled(ctx, r.drop)
	}
	return r
}

// Hold takes over the pass of a large record of the list, and gives it up as soon as
// the record is dropped or written.
func (r *Records) Hold(p *Pass) *Records {
	r.pass = p
	return r
}

// Cut tells that the first record of the list is a part of the one in the store:
// size bytes of it, after the first skip.
func (r *Records) Cut(skip, size int) { r.skip, r.size = skip, size }

func larger(list []tapedeck.Record, size int) bool {
	for i := range list {
		if size -= len(list[i].Data); size < 0 {
			return true
		}
	}
	return false
}

// Len returns how many records there are.
func (r *Records) Len() int { return r.n }

// Offset returns the offset of a record.
func (r *Records) Offset(i int) int64 {
	switch {
	case r.list != nil:
		return r.list[i].Offset
	case r.offsets != nil:
		return r.offsets[i]
	}
	return r.first + int64(i)
}

// Done ends that the records are dropped if the reader stalls.
func (r *Records) Done() {
	r.pass.Leave()
	if r.watch {
		hangup.Stalled(r.ctx, nil)
	}
}

// drop is called in the midst of a write that waits for the reader.
func (r *Records) drop() {
	if r.list != nil {
		r.first = r.list[0].Offset
		if r.list[r.n-1].Offset-r.first != int64(r.n-1) {
			r.offsets = make([]int64, r.n)
			for i := range r.list {
				r.offsets[i] = r.list[i].Offset
			}
		}
	}
	r.list, r.read, r.readAt = nil, tapedeck.Record{}, -1
	r.pass.Leave()
}

// data returns the bytes of a record. The caller lets go of them before it writes
// anything that may wait.
func (r *Records) data(i int) ([]byte, error) {
	switch {
	case r.list != nil:
		return r.list[i].Data, nil
	case r.readAt == i:
		return r.read.Data, nil
	}
	offset := r.Offset(i)
	r.drop() // the record before makes room for this one
	rec, err := r.again(offset)
	if err == nil && len(rec.Data) > large && hangup.Notices(r.ctx) {
		rec, r.pass, err = all.enter(r.ctx, rec, r.again)
	}
	if err != nil {
		return nil, err
	}
	if rec.Offset != offset || i == 0 && r.skip+r.size > len(rec.Data) {
		return nil, errChanged
	}
	if i == 0 && r.size > 0 {
		rec.Data = rec.Data[r.skip : r.skip+r.size]
	}
	r.read, r.readAt = rec, i
	hangup.Stalled(r.ctx, r.drop)
	return rec.Data, nil
}

// errChanged is that a record was erased while half of it was sent.
var errChanged = tapedeck.Errorf(tapedeck.Unavailable, "the events have changed while they were sent").WithHint("read them again")

// Write writes record i to w, piece by piece, through put, which writes at most
// grow times as many bytes to w as it is given. Only whole buffers are flushed,
// and while that waits nothing holds the record but r.
func (r *Records) Write(w *bufio.Writer, i, grow int, put func(piece []byte)) error {
	length := -1
	for done := 0; ; {
		data, err := r.data(i)
		switch {
		case err != nil:
			return err
		case length < 0:
			length = len(data)
		case len(data) != length:
			return errChanged
		}
		room, left := w.Available()/grow, length-done
		if left == 0 {
			return nil
		}
		if room < left && room < leastPiece {
			data = nil
			if err := w.Flush(); err != nil {
				return err
			}
			if r.watch && r.pass.overdue() {
				r.drop()
			}
			continue
		}
		n := min(room, left)
		put(data[done : done+n])
		done += n
	}
}

// leastPiece is the least that is written of a record unless it is its end.
const leastPiece = 1 << 10
