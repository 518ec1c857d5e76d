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

// MaxLine is the most bytes that a line may have. Agents send whole files, and
// pictures, in one. A line becomes an event, and costs some fifteen times its
// length in memory on the way.
const MaxLine = 8 << 20

// Lines reads lines that end with a line feed, or with the end of what there is.
type Lines struct {
	r   *bufio.Reader
	max int
	b   []byte
}

// NewLines returns a reader of lines of at most max bytes; 0 for [MaxLine].
func NewLines(r io.Reader, max int) *Lines {
	if max <= 0 {
		max = MaxLine
	}
	return &Lines{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// keep is the size above which the buffer of one line is not kept for the next.
const keep = 1 << 20

// Next returns the next line that is not blank, without the space around it, as
// valid UTF-8: what is not becomes U+FFFD. It is valid until the next call. The error is io.EOF at the end; what has come of
// a line before any other error is not returned.
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
		if len(l.b) > l.max {
			return nil, tapedeck.Errorf(tapedeck.TooLarge, "the agent sent a line of more than %s, which is too long to be recorded", size(l.max)).
				WithHint("let it read and print less at once")
		}
		part, err = l.r.ReadSlice('\n')
		l.b = append(l.b, part...)
	}
	return l.b, err
}
