package sse

import (
	"bytes"
	"errors"
	"io"
	"iter"
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
		lines := NewLines(r, limit)
		var f Frame
		for {
			line, err := lines.Next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Frame{}, err)
				return
			case len(line) > 0:
				f.addLine(line)
			case f.Data == nil || yield(f, nil):
				f = Frame{}
				continue
			default:
				return
			}
			if len(f.Data) > limit {
				yield(Frame{}, ErrTooLarge)
				return
			}
		}
	}
}

// Values yields the data of frames. It accepts what some senders do against the rules: they
// leave out the empty line after the last frame. Some also leave out those between frames;
// for them, whole reports whether data is complete, and complete data ends where the next
// data begins. whole is nil for other senders. Values skips frames with empty data.
func Values(r io.Reader, limit int, whole func(data []byte) bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := NewLines(r, limit)
		var f Frame
		for {
			line, err := lines.Next()
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			more := bytes.HasPrefix(line, []byte("data"))
			if len(line) == 0 || more && len(f.Data) > 0 && whole != nil && whole(f.Data) {
				if len(f.Data) > 0 && !yield(f.Data, nil) {
					return
				}
				f = Frame{}
			}
			if f.addLine(line); len(f.Data) > limit {
				yield(nil, ErrTooLarge)
				return
			}
			if err != nil {
				if len(f.Data) > 0 {
					yield(f.Data, nil)
				}
				return
			}
		}
	}
}

// addLine adds a line to the frame.
func (f *Frame) addLine(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		f.ID = string(value)
	case "event":
		f.Event = string(value)
	case "data":
		if f.Data == nil {
			f.Data = append([]byte{}, value...)
			return
		}
		f.Data = append(append(f.Data, '\n'), value...)
	}
}
