package subscription

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Limits of a request to a webhook.
const (
	maxAttempt      = 30 * time.Second // from the connection to the end of the answer; less if the lease is shorter
	connectTimeout  = 10 * time.Second
	maxAnswer       = 64 << 10 // bytes of the answer that are read
	maxAnswerHeader = 16 << 10
	signatureHeader = "Webhook-Signature"
	idleConnection  = 30 * time.Second
	idleConnections = 32
	userAgent       = "Tapedeck"
)

// A sender sends requests to webhooks.
type sender struct {
	allow []netip.Prefix
	tls   http.RoundTripper // for https, which may go to public and to allowed addresses
	plain http.RoundTripper // for http, which may go to allowed addresses only
}

// newSender returns a sender. A transport that is not nil is used for all requests.
func newSender(allow []netip.Prefix, transport http.RoundTripper) *sender {
	s := &sender{allow: allow, tls: transport, plain: transport}
	if transport == nil {
		s.tls = guarded(func(a netip.Addr) bool { return isPublic(a) || isAllowed(a, allow) })
		s.plain = guarded(func(a netip.Addr) bool { return isAllowed(a, allow) })
	}
	return s
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

// close closes the connections that are not in use.
func (s *sender) close() {
	for _, t := range []http.RoundTripper{s.tls, s.plain} {
		if t, ok := t.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
}

// errAddress does not say which address a name has: that is not the business of those
// who create subscriptions.
var errAddress = errors.New("its address is not public, and the server does not allow it")

// send sends a body and reports whether the receiver is done with it.
func (s *sender) send(ctx context.Context, url string, body []byte, signature string) (done bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(signatureHeader, signature)
	transport := s.tls
	if req.URL.Scheme == "http" {
		transport = s.plain
	}
	resp, err := transport.RoundTrip(req) // unlike a client it follows no redirect
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return false, fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return readDone(resp.Body)
}

// readDone reports whether an answer says that the receiver is done. An answer that is
// no such JSON says that it is not. One that does not end in time is an error.
func readDone(r io.Reader) (bool, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err != nil {
		return false, err
	}
	var answer struct {
		Done bool `json:"done"`
	}
	isAnswer := len(b) <= maxAnswer && json.Unmarshal(b, &answer) == nil
	return isAnswer && answer.Done, nil
}

// sign returns the value of the header that proves the origin of a body.
func sign(k *key, body []byte, now time.Time) string {
	t := strconv.FormatInt(now.Unix(), 10)
	signature := ed25519.Sign(k.private(), append([]byte(t+"."), body...))
	return "t=" + t + ",kid=" + k.ID + ",ed25519=" + base64.RawURLEncoding.EncodeToString(signature)
}

// deliver sends the wake to the webhook. Requires s.mu, which it releases meanwhile.
func (s *subscriber) deliver(ctx context.Context, streams []streamInfo, tails map[int64]int64) {
	wake := *s.state.Wake
	body, signature, err := s.envelope(&wake, streams)
	if err != nil {
		s.failed(ctx, reason(err))
		return
	}
	s.mu.Unlock()
	attempt, cancel := context.WithTimeout(ctx, min(s.config.Lease, maxAttempt))
	done, err := s.d.client.send(attempt, s.config.URL, body, signature)
	cancel()
	s.mu.Lock()
	switch {
	case s.overtaken(ctx, wake.ID):
	case err != nil:
		s.failed(ctx, "the webhook failed: "+reason(err))
	case !done:
		s.succeeded(ctx)
	default:
		s.done(ctx, tails)
	}
}

// envelope returns the body of a webhook and its signature.
func (s *subscriber) envelope(w *wake, streams []streamInfo) (body []byte, signature string, err error) {
	token, err := s.d.newToken(s.id, w, s.state.Generation)
	if err != nil {
		return nil, "", err
	}
	k, err := s.d.keys.active()
	if err != nil {
		return nil, "", err
	}
	body, err = json.Marshal(notification{
		Subscription: s.id, Wake: w.ID, Generation: s.state.Generation, Streams: streams,
		CallbackURL: s.state.Base + root + "/subscriptions/" + s.id + "/callback", CallbackToken: token,
	})
	return body, sign(&k, body, s.d.options.Now()), err
}

// done ends the wake and acknowledges what it told. Reports may have acknowledged more
// meanwhile.
func (s *subscriber) done(ctx context.Context, tails map[int64]int64) {
	maps.DeleteFunc(tails, func(gen, at int64) bool {
		l := s.pending[gen]
		return l == nil || l.acked >= at
	})
	apply, err := s.acknowledge(ctx, tails)
	if err == nil {
		next := s.state
		next.Wake, next.Failures, next.Next, next.LastError = nil, 0, time.Time{}, ""
		err = s.save(ctx, &next, tails)
	}
	if err != nil { // the receiver gets the wake again
		s.failed(ctx, reason(err))
		return
	}
	apply()
}

// reason returns what people may know of an error.
func reason(err error) string {
	var e *tapedeck.Error
	var dns *net.DNSError
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errAddress):
		return errAddress.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
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
