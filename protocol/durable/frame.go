package durable

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
	"strconv"

	"github.com/tapedeck/tapedeck/internal/backlog"
)

// frameSize returns the approximate size of the frame of p in bytes.
func (rd *reading) frameSize(p *page) int {
	n := rd.size(p)
	if !rd.json && !rd.text {
		n = base64.StdEncoding.EncodedLen(n)
	}
	return n + 256
}

// encodeData writes p as a data event, or nothing if it has no data.
func (rd *reading) encodeData(w sink, p *page) {
	if len(p.parts) == 0 {
		return
	}
	_, _ = io.WriteString(w, "event: data\ndata:")
	switch {
	case rd.json, rd.text:
		rd.encode(&lines{w: w}, p)
	default:
		e := base64.NewEncoder(base64.StdEncoding, w)
		rd.encode(noByte{e}, p)
		_ = e.Close()
	}
	_, _ = io.WriteString(w, "\n\n")
}

// pourData is encodeData for a page that is written piece by piece.
func (rd *reading) pourData(b *bufio.Writer, records *backlog.Records) error {
	if records.Len() == 0 {
		return nil
	}
	_, _ = b.WriteString("event: data\ndata:") // flushing b returns the error
	var err error
	switch {
	case rd.json, rd.text:
		err = rd.pour(b, &lines{w: b}, lineGrowth, records)
	default:
		e := base64.NewEncoder(base64.StdEncoding, b)
		err = rd.pour(b, noByte{e}, base64Growth, records)
		_ = e.Close()
	}
	_, _ = b.WriteString("\n\n")
	return err
}

const (
	// lineGrowth is how many bytes a line end becomes.
	lineGrowth = len("\ndata:")

	// base64Growth is the largest number of output bytes for each input byte in long
	// pieces. The output can begin with up to two bytes that an earlier piece left.
	base64Growth = 2
)

// appendControl appends a control event, which has the offset after the data event before
// it. Its id is also this offset, so that an EventSource resumes by itself.
func appendControl(b []byte, p *page, gen, cursor int64) []byte {
	b = p.next.appendOf(append(b, "id: "...), gen)
	b = p.next.appendOf(append(b, "\nevent: control\ndata:{\"streamNextOffset\":\""...), gen)
	if p.closed {
		return append(b, "\",\"upToDate\":true,\"streamClosed\":true}\n\n"...)
	}
	b = strconv.AppendInt(append(b, "\",\"streamCursor\":\""...), cursor, 10)
	if p.tail {
		return append(b, "\",\"upToDate\":true}\n\n"...)
	}
	return append(b, "\"}\n\n"...)
}

// lines writes text as data lines. A CRLF can be divided between two parts of a page.
// JSON that arrived through this protocol is one line, but that of a program that writes
// to the store need not be.
type lines struct {
	w    sink
	cr   bool // the last byte was a CR, which has already ended its line
	some bool // the line has a byte
}

// WriteByte writes a byte that ends no line and is no space.
func (l *lines) WriteByte(c byte) error {
	l.cr, l.some = false, true
	return l.w.WriteByte(c)
}

// Write implements [io.Writer].
func (l *lines) Write(b []byte) (int, error) {
	n := len(b)
	if l.cr && n > 0 && b[0] == '\n' {
		b = b[1:]
	}
	if n > 0 {
		l.cr = false
	}
	for {
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			break
		}
		_ = l.add(b[:i])
		_, _ = io.WriteString(l.w, "\ndata:")
		l.some = false
		if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
			i++
		} else if b[i] == '\r' && i+1 == len(b) {
			l.cr = true
		}
		b = b[i+1:]
	}
	return n, l.add(b)
}

// add writes bytes of one line. Readers of event streams drop a space after the colon, so a
// line that begins with a space gets one more.
func (l *lines) add(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if !l.some && b[0] == ' ' {
		_ = l.w.WriteByte(' ')
	}
	l.some = true
	_, err := l.w.Write(b)
	return err
}

// noByte is a sink to which no single bytes are written.
type noByte struct{ io.Writer }

// WriteByte implements [io.ByteWriter].
func (noByte) WriteByte(byte) error { panic("durable: bytes are written in runs") }
