package durable

import (
	"bufio"
	"context"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/backlog"
)

// A page is a part of a stream as it is sent.
type page struct {
	parts  []tapedeck.Record // messages, or sequences of bytes
	skip   int               // the number of bytes of the first record before its part
	next   offset
	tail   bool // it ends at the tail of the stream
	closed bool // and the stream is closed

	pass *backlog.Pass // of a large record; the owner of the page leaves it
}

// empty reports whether p has nothing but its offset.
func (p *page) empty() bool { return len(p.parts) == 0 && !p.closed }

// cut makes a page of records that were read for offset at. It has all of them, unless
// the first is a sequence of bytes that is longer than a page.
func (h *handler) cut(rd *reading, at offset, p tapedeck.Page) (page, error) {
	out := page{parts: p.Records, next: offset{n: p.Next}, tail: p.CaughtUp(), closed: p.Closed && p.CaughtUp()}
	if at.k == 0 && (rd.json || len(p.Records) == 0 || len(p.Records[0].Data) <= h.PageBytes) {
		return out, nil
	}
	if rd.json || len(p.Records) == 0 || at.k > int64(len(p.Records[0].Data)) {
		return page{}, badOffset(at.String())
	}
	first := p.Records[0]
	first.Data = first.Data[at.k:]
	out.skip = int(at.k)
	if len(first.Data) > h.PageBytes {
		first.Data = first.Data[:rd.breakAt(first.Data, h.PageBytes)]
		return page{parts: []tapedeck.Record{first}, skip: out.skip, next: offset{at.n, at.k + int64(len(first.Data))}}, nil
	}
	out.parts = append([]tapedeck.Record{first}, p.Records[1:]...) // a copy, because the slice belongs to the store
	if len(first.Data) == 0 {
		out.parts, out.skip = out.parts[1:], 0
	}
	return out, nil
}

// breakAt returns the length of the first part of b, which is longer than size: size, but
// in text not within a character.
func (rd *reading) breakAt(b []byte, size int) int {
	if !rd.text {
		return size
	}
	for i := size; i > 0 && i > size-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return size // it is not UTF-8
}

// size returns the number of bytes of records.
func size(records []tapedeck.Record) int {
	n := 0
	for i := range records {
		n += len(records[i].Data)
	}
	return n
}

// size returns the number of bytes of the body of p.
func (rd *reading) size(p *page) int {
	n := size(p.parts)
	if rd.json {
		n += 2 + max(0, len(p.parts)-1)
	}
	return n
}

// A sink is a destination of encoded bytes.
type sink interface {
	io.Writer
	io.ByteWriter
}

// encode writes the body of p.
func (rd *reading) encode(w sink, p *page) {
	if !rd.json {
		for i := range p.parts {
			_, _ = w.Write(p.parts[i].Data)
		}
		return
	}
	_ = w.WriteByte('[')
	for i := range p.parts {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(p.parts[i].Data)
	}
	_ = w.WriteByte(']')
}

// pageBuffer is how much of a page is written at once. A reader that has stalled keeps
// this much in memory.
const pageBuffer = 32 << 10

var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, pageBuffer) }}

// buffered calls encode with a buffer before w.
func buffered(w io.Writer, encode func(*bufio.Writer) error) error {
	b := buffers.Get().(*bufio.Writer)
	defer buffers.Put(b)
	b.Reset(w)
	defer b.Reset(nil)
	if err := encode(b); err != nil {
		return err
	}
	return b.Flush()
}

// release takes the parts out of p, so that they can be dropped from memory when the
// reader stalls. The output of a view cannot be read again and stays in memory.
func (h *handler) release(ctx context.Context, rd *reading, p *page) *backlog.Records {
	var again func(int64) (tapedeck.Record, error)
	if rd.view == "" {
		again = h.rereading(ctx, rd)
	}
	records := backlog.Of(ctx, p.parts, again).Hold(p.pass)
	if len(p.parts) > 0 && !rd.json {
		records.Cut(p.skip, len(p.parts[0].Data))
	}
	p.parts = nil
	return records
}

// rereading returns how to read a record of a stream again.
func (h *handler) rereading(ctx context.Context, rd *reading) func(int64) (tapedeck.Record, error) {
	return func(offset int64) (tapedeck.Record, error) {
		p, err := h.Store.Read(ctx, rd.id, tapedeck.Range{From: offset, Limit: 1})
		if err != nil || len(p.Records) == 0 {
			return tapedeck.Record{}, err
		}
		return p.Records[0], nil
	}
}

// pour writes the body of a page piece by piece to w, which writes at most grow bytes to
// b for each byte.
func (rd *reading) pour(b *bufio.Writer, w sink, grow int, records *backlog.Records) error {
	write := func(piece []byte) { _, _ = w.Write(piece) } // flushing b returns the error
	if rd.json {
		_ = w.WriteByte('[')
	}
	for i := range records.Len() {
		if i > 0 && rd.json {
			_ = w.WriteByte(',')
		}
		if err := records.Write(b, i, grow, write); err != nil {
			return err
		}
	}
	if rd.json {
		_ = w.WriteByte(']')
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tag returns the entity tag of a page: the incarnation of the stream, the two offsets
// and whether the stream ends there. For a session it has a checksum, because events can
// be erased.
func (rd *reading) tag(p *page) string {
	b := make([]byte, 0, 2*offsetLen+36)
	b = append(b, '"')
	b = strconv.AppendInt(b, rd.session.Gen, 10)
	b = rd.at.append(append(b, ':'))
	b = p.next.append(append(b, ':'))
	if p.closed {
		b = append(b, ":c"...)
	}
	if rd.isSession {
		sum := uint32(0)
		for i := range p.parts {
			sum = crc32.Update(sum, castagnoli, p.parts[i].Data)
		}
		b = strconv.AppendUint(append(b, ':'), uint64(sum), 16)
	}
	return string(append(b, '"'))
}

// matchesTag reports whether If-None-Match has tag. A tag has no comma.
func matchesTag(header []string, tag string) bool {
	for _, list := range header {
		for t := range strings.SplitSeq(list, ",") {
			t = strings.TrimPrefix(strings.TrimSpace(t), "W/")
			if t == tag || t == "*" {
				return true
			}
		}
	}
	return false
}
