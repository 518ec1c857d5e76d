package intake

import (
	"errors"
	"io"
)

// first is how much memory is allocated before anything has arrived.
const first = 16 << 10

// ReadAll reads r to its end, into new memory of exactly the needed size. declared is
// the announced length of r, -1 if there is none. Memory grows with what arrives: at most
// twice that is allocated, whatever was announced. If r ends early, the error is
// [io.ErrUnexpectedEOF].
func ReadAll(r io.Reader, declared int64) ([]byte, error) {
	if declared >= 0 {
		return readDeclared(r, declared)
	}
	b := make([]byte, 0, first)
	for {
		if len(b) == cap(b) {
			b = grow(b, 2*cap(b))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return grow(b, len(b)), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func readDeclared(r io.Reader, n int64) ([]byte, error) {
	b := make([]byte, 0, min(n, first))
	for int64(len(b)) < n {
		if len(b) == cap(b) {
			b = grow(b, int(min(n, 2*int64(cap(b)))))
		}
		m, err := io.ReadFull(r, b[len(b):cap(b)])
		b = b[:len(b)+m]
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// grow returns b with a capacity of exactly size bytes.
func grow(b []byte, size int) []byte {
	if cap(b) == size {
		return b
	}
	return append(make([]byte, 0, size), b...)
}
