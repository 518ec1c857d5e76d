package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// MaxLine is the default limit of a line, in bytes. Agents send whole files and pictures
// in one line. While a line becomes an event, it needs about fifteen times its length
// in memory.
const MaxLine = 8 << 20

// Lines reads lines that end with a line feed or at the end of the input.
type Lines struct {
	r     *bufio.Reader
	limit int
	b     []byte
}

// NewLines returns a reader of lines of at most limit bytes; 0 for [MaxLine].
func NewLines(r io.Reader, limit int) *Lines {
	if limit <= 0 {
		limit = MaxLine
	}
	return &Lines{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// keep is the capacity, in bytes, above which the buffer is not used again for the next
// line.
const keep = 1 << 20

// Next returns the next line that is not blank, without the space around it. U+FFFD
// replaces bytes that are not valid UTF-8. The line is valid until the next call. At
// the end of the input the error is io.EOF. After any other error the beginning of
// the line is lost.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !utf8.Valid(line) {
			line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
		}
		return line, nil
	}
}

func size(n int) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

func (l *Lines) line() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	if cap(l.b) > keep {
		l.b = nil
	}
	l.b = append(l.b[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(l.b) > l.limit {
			return nil, tapedeck.Errorf(tapedeck.TooLarge, "the agent sent a line of more than %s, which is too long to record", size(l.limit)).
				WithHint("ask the agent to read and print less at once")
		}
		part, err = l.r.ReadSlice('\n')
		l.b = append(l.b, part...)
	}
	return l.b, err
}
