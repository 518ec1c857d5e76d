package chat

import (
	"errors"
	"io"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// maxEvent is the limit of an event of a stream, in bytes. Some providers send all
// arguments of a call in one event.
const maxEvent = 64 << 20

var errTooLarge = tapedeck.Errorf(tapedeck.TooLarge, "the model's provider sent an event of more than %d MiB", maxEvent>>20)

// events yields the data of the events of a stream. Model servers do not always send empty
// lines between them.
func events(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for data, err := range sse.Values(r, maxEvent, whole) {
			if errors.Is(err, sse.ErrTooLarge) {
				err = errTooLarge
			}
			if !yield(data, err) {
				return
			}
		}
	}
}

// whole reports whether data is a complete event.
func whole(data []byte) bool { return string(data) == "[DONE]" || isObject(data) }
