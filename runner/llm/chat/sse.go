package chat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/tapedeck/tapedeck"
)

// maxEvent is the largest event of a stream that is read, in bytes. Some
// providers send all arguments of a call in one.
const maxEvent = 64 << 20

var errTooLarge = tapedeck.Errorf(tapedeck.TooLarge, "the model has sent more than %d MiB at once", maxEvent>>20)

// events yields the data of the events of a stream. Servers of models are less
// careful than the rules: a last event may have no empty line after it, and
// events may have none between them. So data is complete at an empty line, at
// the end, and when more comes after what is an event already. Comments and
// other fields are passed over.
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

// whole reports whether data is an event that lacks nothing.
func whole(data []byte) bool { return string(data) == "[DONE]" || isObject(data) }

func join(pending, value []byte) []byte {
	if pending == nil {
		return append([]byte{}, value...)
	}
	return append(append(pending, '\n'), value...)
}

// readLine reads a line of at most so many bytes, without its end. The last one
// may have none; then the error is [io.EOF].
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
