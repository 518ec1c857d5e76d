package hangup

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// A Limit bounds the connections of a server.
type Limit struct {
	Connections int // the largest number of connections at once; 0 for no limit

	// Warn is called when a connection is refused, or cannot be accepted because the
	// process has no free file descriptor. It is called at most once a minute, with the
	// number of times since the last call.
	Warn func(times int64, err error)
}

// ErrTooMany is the error of a connection above the limit.
var ErrTooMany = errors.New("too many connections")

// refusal is the answer to a connection above the limit.
var refusal = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
	string(problem.Encode(tapedeck.Errorf(tapedeck.Unavailable, "the server has as many connections as it allows").WithHint("try again in a second")))

const (
	warnEvery  = time.Minute
	refuseTime = 5 * time.Second // how long a refused client has to send its request and to read the answer
	maxRefused = 128 << 20       // how much is read of a refused request, in bytes
	refuseMost = 64              // how many refused clients are answered at once; the oldest are closed for others
)

type listener struct {
	net.Listener
	limit Limit

	writeTimeout, stallAfter time.Duration // the constants of the package, except in tests

	open atomic.Int64

	mu       sync.Mutex     // guards what follows
	refusing []*net.TCPConn // the oldest first

	missed int64     // refusals since the last warning
	warned time.Time // the last warning
	later  bool      // a timer will warn
}

func newListener(l net.Listener, o Limit) *listener {
	return &listener{Listener: l, limit: o, writeTimeout: WriteTimeout, stallAfter: stallAfter}
}

// Accept returns the next connection below the limit, and refuses those above it.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.warn(err)
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, err
		}
		if limit := int64(l.limit.Connections); l.open.Add(1) <= limit || limit <= 0 {
			return &conn{TCPConn: tcp, listener: l}, nil
		}
		l.open.Add(-1)
		l.warn(ErrTooMany)
		l.refuse(tcp)
	}
}

// warn counts a refusal, and warns of those since the last warning: now, or when it is time.
func (l *listener) warn(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missed++
	switch wait := warnEvery - time.Since(l.warned); {
	case l.limit.Warn == nil || l.later:
	case wait > 0:
		l.later = true
		time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.later = false
			l.warnNow(err)
		})
	default:
		l.warnNow(err)
	}
}

// warnNow warns. The caller has the lock.
func (l *listener) warnNow(err error) {
	l.limit.Warn(l.missed, err)
	l.missed, l.warned = 0, time.Now()
}

// refuse answers a connection and closes it. It waits for the request: many clients take an
// answer that comes before it for a broken connection. And it reads what the client has sent:
// to close a connection with unread bytes would discard the answer, and many clients send
// their whole body before they look for one.
func (l *listener) refuse(c *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.refusing) >= refuseMost { // those that send nothing must not keep others from their answer
		_ = l.refusing[0].Close()
		l.refusing = l.refusing[1:]
	}
	l.refusing = append(l.refusing, c)
	go func() {
		defer l.refused(c)
		_ = c.SetDeadline(time.Now().Add(refuseTime))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return // it asks for nothing
		}
		if _, err := io.WriteString(c, refusal); err == nil && c.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(c, maxRefused)) // it is closed in any case
		}
	}()
}

// refused closes a connection that was refused.
func (l *listener) refused(c *net.TCPConn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusing = slices.DeleteFunc(l.refusing, func(other *net.TCPConn) bool { return other == c })
}
