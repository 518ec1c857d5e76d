// Package intake bounds what the bodies of requests may cost a server: their
// memory counts as it arrives, not as it is promised, all bodies together have a
// budget, and a body that comes too slowly is given up.
package intake

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
)

const (
	// DefaultBudget is for all bodies together.
	DefaultBudget = 128 << 20

	// small is how much of each body may use the whole budget. What exceeds it
	// may use three quarters, so that large bodies leave room for small ones.
	small = 64 << 10

	// Grace is how long a body may take whatever its size. It is the ReadTimeout
	// of the server.
	Grace = 30 * time.Second

	// Rate is how many bytes a second a body must bring after that.
	Rate = 1 << 10

	// step is how many bytes must come before the deadline is moved. A small
	// body costs no call for it.
	step = 16 << 10
)

// A Gate counts the bodies that are in memory.
type Gate struct {
	budget int64
	held   atomic.Int64
}

// New returns a gate with a budget in bytes; 0 is for [DefaultBudget].
func New(budget int64) *Gate {
	if budget <= 0 {
		budget = DefaultBudget
	}
	return &Gate{budget: budget}
}

// Held returns how many bytes of bodies are in memory.
func (g *Gate) Held() int64 { return g.held.Load() }

// Handler counts the bodies that next reads. A body counts until next returns.
// A request with a Content-Encoding is passed to refuse.
func (g *Gate) Handler(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		if err := checkEncoding(r.Header["Content-Encoding"]); err != nil {
			refuse(w, r, err)
			return
		}
		g.serve(w, r, next)
	})
}

func (g *Gate) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	b := &body{ReadCloser: r.Body, gate: g, w: w, moveAt: step}
	defer b.release()
	r.Body = b
	next.ServeHTTP(w, r)
	if b.full {
		b.drain()
	}
}

func checkEncoding(values []string) error {
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" && !strings.EqualFold(v, "identity") {
			return tapedeck.Errorf(tapedeck.Unsupported, "a body with Content-Encoding %.64q is not understood", v).
				WithHint("send it without compression and without that header")
		}
	}
	return nil
}

// A body counts what is read from it.
type body struct {
	io.ReadCloser
	gate   *Gate
	w      http.ResponseWriter
	count  counting
	full   bool // the budget was used up
	slow   bool // it came too slowly
	read   int64
	held   int64 // of the gate
	moveAt int64 // read bytes at which the deadline is moved next
	began  time.Time
}

// counting says what of a body stays in memory.
type counting int

const (
	countAll counting = iota
	countLine
	countNothing
)

// ByLine tells that the body of r is read line by line, so that only the line
// that has begun is in memory.
func ByLine(r *http.Request) {
	if b, ok := r.Body.(*body); ok {
		b.count = countLine
	}
}

func (b *body) Read(p []byte) (int, error) {
	if b.full {
		return 0, errFull
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if b.read += int64(n); b.read >= b.moveAt {
			b.move()
		}
		if !b.admit(p[:n]) {
			return 0, errFull
		}
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		b.slow, err = true, errSlow
	}
	return n, err
}

// GivenUp returns why the body of r was given up while it was read, nil if it was
// not. That ends the context of r: a handler that goes on with what it has read by
// then meets that error first.
func GivenUp(r *http.Request) error {
	b, ok := r.Body.(*body)
	switch {
	case ok && b.full:
		return errFull
	case ok && b.slow:
		return errSlow
	}
	return nil
}

// admit takes from the budget what of p stays in memory.
func (b *body) admit(p []byte) bool {
	switch b.count {
	case countNothing:
		return true
	case countLine:
		if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
			b.release()
			p = p[i+1:]
		}
	}
	g, n := b.gate, int64(len(p))
	b.held += n
	held, most := g.held.Add(n), g.budget
	if b.held > small {
		most -= most / 4
	}
	b.full = held > most
	return !b.full
}

// move gives the body time for what has come so far. A ResponseWriter without
// deadlines has no connection that could be held.
func (b *body) move() {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	b.moveAt = b.read + step
	allowed := Grace + time.Duration(b.read/Rate)*time.Second
	_ = http.NewResponseController(b.w).SetReadDeadline(b.began.Add(allowed))
}

func (b *body) release() {
	if b.held > 0 {
		b.gate.held.Add(-b.held)
		b.held = 0
	}
}

// drain reads what the client still sends after it was refused, without keeping
// it: many clients look at the answer only when they have sent everything.
func (b *body) drain() {
	b.release()
	_ = http.NewResponseController(b.w).Flush()
	b.full, b.count = false, countNothing
	_, _ = io.Copy(io.Discard, io.LimitReader(b, mostDrained)) // the answer is sent already
}

// mostDrained is the most that is read of a body that was refused.
const mostDrained = 64 << 20

var (
	errFull = tapedeck.Errorf(tapedeck.Unavailable, "the server has too many large requests in its memory").
		WithHint("nothing was stored; try again in a second")
	errSlow = tapedeck.Errorf(tapedeck.Invalid, "the body came too slowly").
		WithHint("nothing was stored; send at least %d bytes a second", Rate)
)

// Refused returns the error of a body that was given up here, nil if err is of
// another kind, and its status.
func Refused(err error) (*tapedeck.Error, int) {
	switch {
	case errors.Is(err, errFull):
		return errFull, http.StatusServiceUnavailable
	case errors.Is(err, errSlow):
		return errSlow, http.StatusRequestTimeout
	}
	return nil, 0
}
