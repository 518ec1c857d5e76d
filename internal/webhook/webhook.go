// Package webhook sends requests to URLs that clients have given. It connects only to
// addresses that are public or that the operator allows, and it follows no redirect, so
// that a client cannot make the server reach what only the server should reach.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Limits of a request to a webhook.
const (
	// MaxAnswer is how many bytes of an answer are read.
	MaxAnswer = 64 << 10

	connectTimeout  = 10 * time.Second
	maxAnswerHeader = 16 << 10
	idleConnection  = 30 * time.Second
	idleConnections = 32
	userAgent       = "Tapedeck"
)

// A Client sends requests to webhooks.
type Client struct {
	allow []netip.Prefix
	tls   http.RoundTripper // for https, which may go to public and to allowed addresses
	plain http.RoundTripper // for http, which may go to allowed addresses only
}

// New returns a client. Requests may also go to the allowed addresses, there without
// encryption, too. A transport that is not nil is used for all requests, without a look
// at addresses.
func New(allow []netip.Prefix, transport http.RoundTripper) *Client {
	c := &Client{allow: allow, tls: transport, plain: transport}
	if transport == nil {
		c.tls = guarded(func(a netip.Addr) bool { return isPublic(a) || isAllowed(a, allow) })
		c.plain = guarded(func(a netip.Addr) bool { return isAllowed(a, allow) })
	}
	return c
}

// guarded returns a transport that connects only to permitted addresses. It looks at the
// address of each connection, after the name was resolved: a name may resolve to another
// address each time. It uses no proxy, which would connect to any address.
func guarded(permit func(netip.Addr) bool) http.RoundTripper {
	dialer := net.Dialer{
		Timeout: connectTimeout,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !permit(at.Addr()) {
				return errAddress
			}
			return nil
		},
	}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: connectTimeout, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, MaxIdleConns: idleConnections, MaxIdleConnsPerHost: 1, IdleConnTimeout: idleConnection,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}

// Close closes the connections that are not in use.
func (c *Client) Close() {
	for _, t := range []http.RoundTripper{c.tls, c.plain} {
		if t, ok := t.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
}

// errAddress does not say which address a name has: that is not the business of those
// who give URLs.
var errAddress = errors.New("its address is not public, and the server does not allow it")

// Post sends a body with a header, to which it adds the User-Agent. A status that is not
// from 200 to 299 is an error, and so is an answer that has not ended when ctx does. Of a
// longer answer than [MaxAnswer] it returns one byte more than that.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body []byte) (answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("User-Agent", userAgent)
	transport := c.tls
	if req.URL.Scheme == "http" {
		transport = c.plain
	}
	resp, err := transport.RoundTrip(req) // unlike a client it follows no redirect
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, &statusError{resp.StatusCode}
	}
	return io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
}

// A statusError is an answer with a status that is no success.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("it answered %d", e.status) }

// Reason returns what people may know of an error of [Client.Post], as the end of a
// sentence about the webhook.
func Reason(err error) string {
	var e *tapedeck.Error
	var status *statusError
	var dns *net.DNSError
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errAddress):
		return errAddress.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &e) && e.Kind != tapedeck.Internal:
		return e.Message
	case errors.As(err, &dns):
		return "its name could not be resolved"
	case errors.As(err, &op) && op.Op == "dial":
		return "no connection could be made"
	case errors.As(err, &certificate):
		return "its certificate is not valid"
	}
	return "it did not answer as a web server does" // the text of err may have parts of the answer
}

// Backoff returns how long to wait after a number of failures: a second, then twice as
// long each time up to a minute, and up to a fifth more or less, so that many webhooks
// are not tried at the same time.
func Backoff(failures int) time.Duration {
	d := time.Second << min(max(failures-1, 0), 6)
	d = min(d, time.Minute)
	return d + time.Duration((rand.Float64()*0.4-0.2)*float64(d))
}
