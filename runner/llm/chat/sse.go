package chat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/tapedeck/tapedeck"
)

// maxEvent is the limit of an event of a stream, in bytes. Some providers send all
// arguments of a call in one event.
const maxEvent = 64 << 20

var errTooLarge = tapedeck.Errorf(tapedeck.TooLarge, "the model's provider sent an event of more than %d MiB", maxEvent>>20)

// events yields the data of the events of a stream. Model servers do not always follow the
// SSE rules: the empty line after the last event can be missing, and so can the empty
// lines between events. So data is complete at an empty line, at the end of the stream,
// and when more data follows a complete event. Comments and other fields are ignored.
func events(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(r, 32<<10)
		var pending []byte
		for {
			line, err := readLine(in, maxEvent-len(pending))
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			value, isData := bytes.CutPrefix(line, []byte("data:"))
			ends := len(line) == 0 || isData && whole(pending)
			if ends && pending != nil {
				if !yield(pending, nil) {
					return
				}
				pending = nil
			}
			if isData {
				pending = join(pending, bytes.TrimPrefix(value, []byte(" ")))
			}
			if err != nil {
				if pending != nil {
					yield(pending, nil)
				}
				return
			}
		}
	}
}

// whole reports whether data is a complete event.
func whole(data []byte) bool { return string(data) == "[DONE]" || isObject(data) }

func join(pending, value []byte) []byte {
	if pending == nil {
		return append([]byte{}, value...)
	}
	return append(append(pending, '\n'), value...)
}

// readLine returns a line of at most limit bytes, without its line end. If the last line
// has no line end, the error is [io.EOF].
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errTooLarge
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}
