package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tapedeck/tapedeck"
)

// InstanceHeader is the header in which /healthz tells which process answers.
const InstanceHeader = "Tapedeck-Instance"

// greetTimeout is how long a process may take to tell which one it is. A process
// that is stopped still accepts connections, and answers nothing.
const greetTimeout = 8 * time.Second

// NewFor returns a client of one process: the server at baseURL that tells this
// instance. The client asks on every connection it opens, before the first
// request, because another server may have taken the port since. A request that
// would reach another server is not sent: the error is [tapedeck.Unavailable].
func NewFor(baseURL, instance string, options ...Option) (*Client, error) {
	c, err := New(baseURL, options...)
	if err != nil {
		return nil, err
	}
	t := newTransport()
	t.Proxy = nil // the process is on this machine
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := greet(ctx, conn, addr, instance); err != nil {
			_ = conn.Close() // the error of greet says more
			return nil, err
		}
		return conn, nil
	}
	c.http = &http.Client{Transport: t}
	return c, nil
}

// A missedError says that a request was not sent: the process does not answer, or
// another server is at its address.
type missedError struct{ err *tapedeck.Error }

func (e *missedError) Error() string { return e.err.Error() }
func (e *missedError) Unwrap() error { return e.err }

// greet asks the process at the other end of conn which one it is.
func greet(ctx context.Context, conn net.Conn, addr, instance string) error {
	_ = conn.SetDeadline(time.Now().Add(greetTimeout)) // fails only for a closed connection, as does what follows
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	got, err := instanceAt(conn, addr)
	var refused *tapedeck.Error
	switch {
	case errors.As(err, &refused):
		return &missedError{tapedeck.Errorf(tapedeck.Unavailable, "the server at %s takes no connection: %s", addr, refused.Message).
			WithHint("%s", refused.Hint).Because(errBusy)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return silent(addr, err)
	case err != nil || got != instance:
		return &missedError{tapedeck.Errorf(tapedeck.Unavailable, "another server is at %s now", addr).
			WithHint("nothing was sent to it").Because(err)}
	}
	return conn.SetDeadline(time.Time{})
}

// instanceAt requests /healthz over a new connection and reads the whole answer.
func instanceAt(conn net.Conn, addr string) (string, error) {
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
		return "", err
	}
	in := bufio.NewReader(io.LimitReader(conn, 16<<10)) // another program may send without end
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return "", err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return "", readError(resp)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK || resp.Close || in.Buffered() > 0 {
		return "", errors.New("the answer to /healthz is not that of a server")
	}
	return resp.Header.Get(InstanceHeader), nil
}

// errBusy is the reason of an error that [Busy] reports.
var errBusy = errors.New("the server takes no connection")

// Busy reports whether err says that a server answers, and takes no connection now.
func Busy(err error) bool { return errors.Is(err, errBusy) }

func silent(at string, cause error) error {
	return &missedError{tapedeck.Errorf(tapedeck.Unavailable, "the process at %s does not answer", at).
		WithHint("it may be stopped or overloaded; continue it (kill -CONT) or end it").Because(cause)}
}

// Silent reports whether err says that a process accepts connections and does not
// answer.
func Silent(err error) bool {
	var missed *missedError
	return errors.As(err, &missed) && errors.Is(missed.err, os.ErrDeadlineExceeded)
}
