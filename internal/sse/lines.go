package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Lines reads the lines of an event stream, as the specification of EventSource says: they
// end with LF, CR or CRLF, and a byte order mark before the first one is not part of it.
type Lines struct {
	r     *bufio.Reader
	limit int
	begun bool
	cr    bool   // the last line ended with CR; an LF after it is part of that end
	long  []byte // of a line that is longer than the buffer of r
}

// ErrTooLarge is the error of an event, or a line, that is larger than its reader accepts.
var ErrTooLarge = errors.New("an event of the stream is too large")

// NewLines returns a reader of lines of at most limit bytes.
func NewLines(r io.Reader, limit int) *Lines {
	const buffer = 64 << 10
	return &Lines{r: bufio.NewReaderSize(r, buffer), limit: limit}
}

// Next returns the next line without its end, as soon as that has arrived. Its bytes are
// valid until the next call. At the end of the stream the error is [io.EOF], and the line
// is what follows the last end of a line.
func (l *Lines) Next() ([]byte, error) {
	const keep = 1 << 20
	if l.long = l.long[:0]; cap(l.long) > keep {
		l.long = nil
	}
	for {
		if err := l.fill(); err != nil {
			return l.long, err
		}
		buffer, _ := l.r.Peek(l.r.Buffered())
		i := bytes.IndexByte(buffer, '\n')
		if j := bytes.IndexByte(buffer[:max(i, 0)], '\r'); i < 0 {
			i = bytes.IndexByte(buffer, '\r')
		} else if j >= 0 {
			i = j
		}
		end := i
		if i < 0 {
			end = len(buffer)
		}
		if len(l.long)+end > l.limit {
			return nil, ErrTooLarge
		}
		line := buffer[:end]
		if i < 0 || len(l.long) > 0 {
			l.long = append(l.long, line...)
			line = l.long
		}
		if i < 0 {
			_, _ = l.r.Discard(end) // it is in the buffer
			continue
		}
		l.cr = buffer[i] == '\r'
		_, _ = l.r.Discard(i + 1) // it is in the buffer
		return line, nil
	}
}

// fill waits for the next byte of a line.
func (l *Lines) fill() error {
	first, err := l.r.Peek(1)
	if err == nil && !l.begun {
		if mark := []byte("\ufeff"); first[0] == mark[0] {
			if start, _ := l.r.Peek(len(mark)); bytes.Equal(start, mark) {
				_, err = l.r.Discard(len(mark))
			}
		}
		l.begun = true
		if err == nil {
			first, err = l.r.Peek(1)
		}
	}
	if err == nil && l.cr {
		if l.cr = false; first[0] == '\n' {
			_, _ = l.r.Discard(1) // it is in the buffer
			_, err = l.r.Peek(1)
		}
	}
	return err
}
