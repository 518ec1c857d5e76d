// Package intake bounds what the bodies of requests may cost a server. All bodies
// together have a budget of memory, which counts what has arrived, not what was
// announced. No sender can use all of it. A body that arrives too slowly is refused.
package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
)

const (
	// DefaultBudget is the budget of memory for all bodies together, in bytes.
	DefaultBudget = 128 << 20

	// What a sender holds may be this many times what is then free: one alone can take three
	// quarters of the budget with large bodies, the next one three quarters of the rest, and so
	// on. Those of at most small bytes may take fifteen sixteenths.
	ofLarge = 3
	ofSmall = 15
	small   = 64 << 10

	// Grace is how long a body of any size may take. It is the ReadTimeout of the server.
	Grace = 30 * time.Second

	// Rate is how many bytes a second must arrive after that.
	Rate = 1 << 10

	// step is how many bytes must arrive before the deadline moves. So a small body costs
	// no system call for it.
	step = 16 << 10
)

// A Gate counts the bodies that are in memory.
type Gate struct {
	// Sender returns who sends a request; [New] sets [Address]. Set it before the first request.
	Sender func(r *http.Request) string

	budget int64

	mu   sync.Mutex
	held int64
	by   map[string]int64 // by sender; only those who hold something
}

// New returns a gate with a budget in bytes; 0 is for [DefaultBudget].
func New(budget int64) *Gate {
	if budget <= 0 {
		budget = DefaultBudget
	}
	return &Gate{Sender: Address, budget: budget, by: map[string]int64{}}
}

// Address returns the address of the client of a request, without its port.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Held returns how many bytes of bodies are in memory.
func (g *Gate) Held() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// Counts reports whether r brings bytes that must pass a gate: a body, or the messages of
// a connection that it upgrades.
func Counts(r *http.Request) bool { return hasBody(r) || len(r.Header["Upgrade"]) > 0 }

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// Serve calls next, and counts the body of r until next returns. A request with a
// Content-Encoding is passed to refuse. Messages of an upgraded connection are counted
// by their reader, see [ShareOf].
func (g *Gate) Serve(w http.ResponseWriter, r *http.Request, next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) {
	from := account{g, g.Sender(r)}
	if !hasBody(r) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, from)))
		return
	}
	if err := checkEncoding(r.Header["Content-Encoding"]); err != nil {
		refuse(w, r, err)
		return
	}
	b := &body{ReadCloser: r.Body, from: from, w: w, moveAt: step}
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
	from   account
	w      http.ResponseWriter
	count  counting
	open   bool        // it may be silent between two lines
	cut    atomic.Bool // nothing more is read of it
	full   bool        // there was no space for it in the budget
	slow   bool        // it arrived too slowly
	read   int64
	held   int64 // the part of the budget that it holds
	moveAt int64 // the value of read at which the deadline moves next
	began  time.Time
}

// A counting says how much of a body stays in memory.
type counting int

const (
	countAll counting = iota
	countLine
	countNothing
)

// ByLine says that the body of r is read line by line, so that only the current line is
// in memory.
func ByLine(r *http.Request) {
	if b, ok := r.Body.(*body); ok {
		b.count = countLine
	}
}

// Open says that the body of r is read line by line, and that it stays open: its client
// sends a line when it has one. A line that has begun must arrive in time. After cut, a read
// that waits fails, and so does every later one.
func Open(w http.ResponseWriter, r *http.Request) (cut func()) {
	c := http.NewResponseController(w)
	b, ok := r.Body.(*body)
	if !ok {
		_ = c.SetReadDeadline(time.Time{}) // not every ResponseWriter has deadlines
		return func() { _ = c.SetReadDeadline(time.Now()) }
	}
	b.count, b.open = countLine, true
	return func() {
		b.cut.Store(true)
		_ = c.SetReadDeadline(time.Now())
	}
}

func (b *body) Read(p []byte) (int, error) {
	if b.full {
		return 0, errFull
	}
	if b.open {
		b.awaitLine()
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if b.read += int64(n); b.read >= b.moveAt && !b.open {
			b.moveDeadline()
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

// GivenUp returns why the body of r was refused while it was read, nil if it was not. A
// refusal ends the context of r, so a handler that continues with the part that it has
// read may see the error of the context first.
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

// admit counts the part of p that stays in memory. It reports whether the budget has
// space for it.
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
	n := int64(len(p))
	if !b.from.take(n, b.held+n) {
		b.release() // now: otherwise several bodies that do not fit together would all fail
		b.full = true
		return false
	}
	b.held += n
	return true
}

// An account is that of a sender at a gate.
type account struct {
	gate   *Gate // nil for no limit
	sender string
}

// take reserves n bytes. held is what the body or the connection then has in total, n
// included. take reports false, and reserves nothing, if there is no space for them.
func (a account) take(n, held int64) bool {
	times := int64(ofSmall)
	if held > small {
		times = ofLarge
	}
	g := a.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	mine, free := g.by[a.sender]+n, g.budget-g.held-n
	if mine > times*free {
		return false
	}
	g.held, g.by[a.sender] = g.held+n, mine
	return true
}

// give returns n bytes to the budget.
func (a account) give(n int64) {
	g := a.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= n
	if g.by[a.sender] -= n; g.by[a.sender] <= 0 {
		delete(g.by, a.sender)
	}
}

// moveDeadline gives the body more time, because more of it has arrived. A
// ResponseWriter without deadlines has no connection that a slow body could hold.
func (b *body) moveDeadline() {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	b.moveAt = b.read + step
	allowed := Grace + time.Duration(b.read/Rate)*time.Second
	_ = http.NewResponseController(b.w).SetReadDeadline(b.began.Add(allowed))
}

// awaitLine sets the deadline of the next read of an open body.
func (b *body) awaitLine() {
	deadline := time.Time{}
	if b.held > 0 { // a part of a line
		deadline = time.Now().Add(Grace)
	}
	c := http.NewResponseController(b.w)
	_ = c.SetReadDeadline(deadline)
	if b.cut.Load() { // perhaps just now, and then this has replaced its deadline
		_ = c.SetReadDeadline(time.Now())
	}
}

// release returns what the body holds to the budget.
func (b *body) release() {
	if b.held > 0 {
		b.from.give(b.held)
		b.held = 0
	}
}

// drain reads and discards what the client still sends after the refusal: many clients
// read the answer only when they have sent everything.
func (b *body) drain() {
	b.release()
	_ = http.NewResponseController(b.w).Flush()
	b.full, b.count = false, countNothing
	_, _ = io.Copy(io.Discard, io.LimitReader(b, maxDrained)) // the answer was sent already
}

// maxDrained is how much is read of a refused body.
const maxDrained = 64 << 20

var (
	errFull = tapedeck.Errorf(tapedeck.Unavailable, "the server has too many large requests in memory").
		WithHint("nothing was stored; try again in a second")
	errSlow = tapedeck.Errorf(tapedeck.Invalid, "the body arrived too slowly").
		WithHint("nothing was stored; send at least %d bytes a second", Rate)
)

// Refused returns the error of a refused body and its status. The error is nil if err
// has another reason.
func Refused(err error) (*tapedeck.Error, int) {
	switch {
	case errors.Is(err, errFull):
		return errFull, http.StatusServiceUnavailable
	case errors.Is(err, errSlow):
		return errSlow, http.StatusRequestTimeout
	}
	return nil, 0
}
