package intake

import (
	"net/http"
	"sync/atomic"
)

// A Share counts memory that is not a request body: messages of an upgraded connection,
// or lines of a body that stays open. Its methods may be called by several goroutines.
type Share struct {
	from account
	held atomic.Int64
}

type accountKey struct{}

// ShareOf returns a share for the connection of a request. Outside of [Gate.Serve] it
// has no limit.
func ShareOf(r *http.Request) *Share {
	if b, ok := r.Body.(*body); ok {
		return &Share{from: b.from}
	}
	from, _ := r.Context().Value(accountKey{}).(account)
	return &Share{from: from}
}

// Take counts n more bytes. If the budget has no space for them, it counts nothing and
// returns an error of kind [tapedeck.Unavailable].
func (s *Share) Take(n int64) error {
	if s.from.gate == nil {
		return nil
	}
	if !s.from.take(n, s.held.Add(n)) {
		s.held.Add(-n)
		return errFull
	}
	return nil
}

// Give returns n bytes to the budget.
func (s *Share) Give(n int64) {
	if s.from.gate != nil {
		s.held.Add(-n)
		s.from.give(n)
	}
}
