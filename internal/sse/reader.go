package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"slices"
)

// MaxFrame is the largest frame that [Read] accepts, in bytes.
const MaxFrame = 256 << 20

// A Frame is one event of a stream. Its bytes belong to the caller.
type Frame struct {
	ID    string // "" if it has no id; then the last id stays valid
	Event string // "" means "message"
	Data  []byte
}

// Read yields the frames of an event stream until r ends. It skips comments and retry
// lines. It drops an incomplete frame at the end of r, as the specification of
// EventSource says: the frame is sent again after a reconnect.
func Read(r io.Reader) iter.Seq2[Frame, error] { return ReadUpTo(r, MaxFrame) }

// ReadUpTo is [Read] for a sender that is not trusted: it accepts frames of at most limit
// bytes.
func ReadUpTo(r io.Reader, limit int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		var f Frame
		var has bool
		for {
			line, err := readLine(br, limit)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Frame{}, err)
				return
			case len(line) == 0:
				if has && !yield(f, nil) {
					return
				}
				f, has = Frame{}, false
				continue
			}
			has = f.addLine(line) || has
			if len(f.Data) > limit {
				yield(Frame{}, errTooLarge)
				return
			}
		}
	}
}

// addLine adds a line to the frame and reports whether it was data.
func (f *Frame) addLine(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		f.ID = string(value)
	case "event":
		f.Event = string(value)
	case "data":
		if f.Data != nil {
			f.Data = append(f.Data, '\n')
		}
		f.Data = append(f.Data, value...)
		if f.Data == nil {
			f.Data = []byte{}
		}
		return true
	}
	return false
}

var errTooLarge = errors.New("an event of the stream is too large")

// readLine reads one line without its end. The server ends lines with LF; a CR before it
// is dropped.
func readLine(br *bufio.Reader, limit int) ([]byte, error) {
	var long []byte
	for {
		part, err := br.ReadSlice('\n')
		if err == nil && long == nil {
			return trimLine(part), nil
		}
		long = append(long, part...)
		switch {
		case err == nil:
			return trimLine(long), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(long) > limit:
			return nil, errTooLarge
		}
		long = slices.Grow(long, len(long))
	}
}

func trimLine(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
}
