// Package backlog writes records to a client that may read slowly. While the client
// reads, the records are in memory. When it stalls, they are dropped, and read again
// when it continues. So a stuck client costs little memory, however much it has asked
// for.
package backlog

import (
	"bufio"
	"context"
	"sync"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/hangup"
)

// minDropped is the smallest size of records that are dropped.
const minDropped = 16 << 10

// Records are the records of one answer.
type Records struct {
	ctx   context.Context
	again func(offset int64) (tapedeck.Record, error)

	list atomic.Pointer[[]tapedeck.Record] // nil after the records were dropped; read without mu, because it is loaded for every record

	mu      sync.Mutex // a write of another goroutine may call drop
	n       int
	offsets []int64 // set when the records are dropped: their offsets, nil if these are consecutive
	first   int64   // set when the records are dropped: the first offset

	skip, size int // the part of the first record, see [Records.Cut]; size 0 for all of it

	reread   tapedeck.Record // the last record that was read again
	rereadAt int             // its index; -1 for none
	watched  bool            // drop is called when the client stalls
	pass     *Pass           // the pass of the record in memory, if it is large
}

// Of returns the records of list. The caller must not keep list. again reads a record
// again; if it is nil, the records are never dropped. Call Done when they are written.
func Of(ctx context.Context, list []tapedeck.Record, again func(offset int64) (tapedeck.Record, error)) *Records {
	r := &Records{ctx: ctx, again: again, n: len(list), rereadAt: -1}
	r.list.Store(&list)
	if again != nil && isLarger(list, minDropped) {
		r.watched = true
		hangup.Stalled(ctx, r.drop)
	}
	return r
}

// Hold takes over the pass of a large record of the list, and leaves it as soon as the
// record is dropped or written.
func (r *Records) Hold(p *Pass) *Records {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pass = p; r.list.Load() == nil { // dropped meanwhile
		p.Leave()
	}
	return r
}

// Cut says that the first record of the list is only a part of the stored record: size
// bytes after the first skip bytes.
func (r *Records) Cut(skip, size int) { r.skip, r.size = skip, size }

// isLarger reports whether the records of list have more than size bytes.
func isLarger(list []tapedeck.Record, size int) bool {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.offset(i)
}

func (r *Records) offset(i int) int64 {
	if list := r.list.Load(); list != nil {
		return (*list)[i].Offset
	}
	if r.offsets != nil {
		return r.offsets[i]
	}
	return r.first + int64(i)
}

// Done ends the use of the records.
func (r *Records) Done() {
	if r.watched {
		hangup.Stalled(r.ctx, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pass.Leave()
}

// drop drops the records from memory. It is called during a write that waits for the
// client.
func (r *Records) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked()
}

func (r *Records) dropLocked() {
	if p := r.list.Load(); p != nil && r.n > 0 {
		list := *p
		r.first = list[0].Offset
		if list[r.n-1].Offset-r.first != int64(r.n-1) {
			r.offsets = make([]int64, r.n)
			for i := range list {
				r.offsets[i] = list[i].Offset
			}
		}
	}
	r.list.Store(nil)
	r.reread, r.rereadAt = tapedeck.Record{}, -1
	r.pass.Leave()
}

// data returns the bytes of a record. The caller must not keep them during a write that
// may wait.
func (r *Records) data(i int) ([]byte, error) {
	if list := r.list.Load(); list != nil {
		return (*list)[i].Data, nil
	}
	return r.dataAgain(i)
}

// dataAgain reads a record again, unless it is the record that was read again last.
func (r *Records) dataAgain(i int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rereadAt == i {
		return r.reread.Data, nil
	}
	offset := r.offset(i)
	r.dropLocked() // the record before, so that only one is in memory
	rec, err := r.again(offset)
	if err == nil && len(rec.Data) > large && hangup.Notices(r.ctx) {
		rec, r.pass, err = processGate.enter(r.ctx, rec, r.again)
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
	r.reread, r.rereadAt = rec, i
	hangup.Stalled(r.ctx, r.drop)
	return rec.Data, nil
}

// errChanged is the error of a record that was erased after a part of it was sent.
var errChanged = tapedeck.Errorf(tapedeck.Unavailable, "the events changed while they were sent").WithHint("read them again")

// Write passes record i to write in pieces. For each piece, write appends at most
// grow × len(piece) bytes to w. Only full buffers are flushed. During a flush
// only r refers to the record, so that it can be dropped.
func (r *Records) Write(w *bufio.Writer, i, grow int, write func(piece []byte)) error {
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
		if (length-done)*grow <= w.Available() {
			write(data[done:])
			return nil
		}
		if room := w.Available() / grow; room >= minPiece {
			write(data[done : done+room])
			done += room
			continue
		}
		data = nil
		if err := w.Flush(); err != nil {
			return err
		}
		r.dropOverdue()
	}
}

// dropOverdue drops the record if others wait for its memory.
func (r *Records) dropOverdue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched && r.pass.overdue() {
		r.dropLocked()
	}
}

// minPiece is the smallest piece of a record that is written, except the last one.
const minPiece = 1 << 10
