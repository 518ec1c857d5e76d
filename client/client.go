// Package client calls the HTTP API of a Tapedeck server. The command line uses
// it, and so can any Go program.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/secret"
)

// A Client calls one server. Its methods return [*tapedeck.Error]; a server that
// cannot be reached is [tapedeck.Unavailable]. It may be used by several
// goroutines.
type Client struct {
	base    string
	http    *http.Client
	headers []func(context.Context) (http.Header, error)
	refused func(context.Context) (*Client, error)
}

// An Option changes how a client sends its requests.
type Option func(*Client)

// WithHTTPClient makes the client send its requests with c, for example through a
// transport with certificates. Its Timeout, if it has one, also ends streams.
// [NewFor] ignores this option, because it checks the server on each connection.
func WithHTTPClient(c *http.Client) Option { return func(to *Client) { to.http = c } }

// WithHeader makes the client add headers to each request, such as Authorization
// with a token. The client calls f before each request, also before each
// reconnect of a stream, so f may renew a token. An error of f ends the request, and
// nothing is sent. It also ends a stream, unless it is a [tapedeck.Error] of a kind
// that may pass, such as [tapedeck.Unavailable]. A header of f replaces one of the same name. The
// option may be given several times.
func WithHeader(f func(context.Context) (http.Header, error)) Option {
	return func(to *Client) { to.headers = append(to.headers, f) }
}

// WithToken makes the client send a token with each request.
func WithToken(token string) Option {
	header := http.Header{"Authorization": {"Bearer " + token}}
	return WithHeader(func(context.Context) (http.Header, error) { return header, nil })
}

// New returns a client of the server at baseURL, such as
// "http://127.0.0.1:4747".
func New(baseURL string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		address := secret.Address(baseURL)
		like := "http://127.0.0.1:4747"
		if _, _, err := net.SplitHostPort(address); err == nil && !strings.Contains(address, "/") { // only the scheme is missing
			like = "http://" + address
		}
		return nil, tapedeck.Errorf(tapedeck.Invalid, "%q is not the URL of a server", address).WithHint("it looks like %s", like)
	}
	if n, err := strconv.Atoi(cmp.Or(u.Port(), "1")); err != nil || n < 1 || n > 65535 {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "%q has no valid port", secret.Address(baseURL)).WithHint("ports are 1 to 65535")
	}
	if u.RawQuery != "" || u.ForceQuery {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the URL of a server has no query: %q", secret.Address(baseURL)).
			WithHint("leave out what follows the question mark")
	}
	c := &Client{base: strings.TrimRight(u.String(), "/")}
	for _, o := range options {
		o(c)
	}
	if c.http == nil {
		c.http = &http.Client{Transport: newTransport()}
	}
	return c, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: 5 * time.Minute, // a large import answers late
	}
}

// OnRefused makes the client ask f for another client when its own server cannot
// be reached, and send the request through that one: no server has received it.
// It must be called before the first request, and is not for requests that
// follow a session.
func (c *Client) OnRefused(f func(context.Context) (*Client, error)) { c.refused = f }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// BaseURL returns the URL that the client was made with.
func (c *Client) BaseURL() string { return c.base }

// address returns the URL for errors, without secrets.
func (c *Client) address() string { return secret.Address(c.base) }

// Ping returns an error unless a Tapedeck server answers, and soon: a process that
// is stopped still accepts connections (see [Silent]). Another program that answers
// /healthz is not one.
func (c *Client) Ping(ctx context.Context) error {
	soon, stop := context.WithTimeout(ctx, greetTimeout)
	defer stop()
	resp, err := c.do(soon, http.MethodGet, "/healthz", &request{}, nil)
	switch {
	case err != nil && ctx.Err() == nil && soon.Err() != nil:
		return silent(c.address(), os.ErrDeadlineExceeded)
	case errors.Is(err, errBroken):
		return tapedeck.Errorf(tapedeck.Unavailable, "the program at %s ends the connection without an answer", c.address()).
			WithHint("maybe it wants HTTPS, or it is not a Tapedeck server").Because(err)
	case err != nil:
		return err
	case resp.Header.Get(InstanceHeader) != "" && resp.StatusCode < http.StatusBadRequest:
		return resp.Body.Close()
	case resp.Header.Get(InstanceHeader) != "" || answeredInFront(resp.StatusCode):
		return readError(resp)
	}
	return errors.Join(c.foreign(resp), resp.Body.Close())
}

// answeredInFront reports whether a status may be that of a proxy, or of a check of access,
// in front of a Tapedeck server.
func answeredInFront(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// foreign returns the error of an answer to a ping that is not from a Tapedeck server.
func (c *Client) foreign(resp *http.Response) error {
	e := tapedeck.Errorf(tapedeck.Unavailable, "there is no Tapedeck server at %s", c.address())
	u, err := url.Parse(c.base)
	if err != nil {
		return e
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // it helps, and need not be there
	switch {
	case u.Scheme == "http" && resp.StatusCode == http.StatusBadRequest && bytes.Contains(said, []byte("HTTPS")):
		return e.WithHint("what answers there wants HTTPS: https://%s", u.Host)
	case u.Path != "":
		return e.WithHint("leave out the path, unless a proxy adds it: %s://%s", u.Scheme, u.Host)
	}
	return e.WithHint("another program answers there, with the status %d; look at host and port of the URL", resp.StatusCode)
}

// A request is what send sends besides method and path.
type request struct {
	query       url.Values
	body        io.Reader
	contentType string
	header      http.Header
}

// send sends one request. The caller closes the body of the response, which has
// a status below 400.
func (c *Client) send(ctx context.Context, method, path string, r *request, accept []string) (*http.Response, error) {
	if r == nil {
		r = &request{}
	}
	if err := checkSession(path); err != nil {
		return nil, err
	}
	resp, err := c.sendOnce(ctx, method, path, r, accept)
	for tries := 0; c.refused != nil && tries < maxRefused && unheard(err) && !slices.Contains(accept, "text/event-stream"); tries++ {
		other, elsewhere := c.refused(ctx)
		if elsewhere != nil {
			return nil, elsewhere
		}
		resp, err = other.sendOnce(ctx, method, path, r, accept)
	}
	return resp, err
}

// maxRefused is how often a request looks for another server.
const maxRefused = 3

// unheard reports whether no server has received the request.
func unheard(err error) bool {
	var op *net.OpError
	var missed *missedError
	return errors.As(err, &missed) || errors.As(err, &op) && op.Op == "dial"
}

func (c *Client) sendOnce(ctx context.Context, method, path string, r *request, accept []string) (*http.Response, error) {
	resp, err := c.do(ctx, method, path, r, accept)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		return nil, readError(resp)
	}
	return resp, err
}

// do is sendOnce, also for answers that are errors.
func (c *Client) do(ctx context.Context, method, path string, r *request, accept []string) (*http.Response, error) {
	u := c.base + path
	if len(r.query) > 0 {
		u += "?" + r.query.Encode()
	}
	body := r.body
	if body != nil {
		body = io.NopCloser(body) // it is read again if nobody has heard of it
	}
	req, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the request cannot be made: %w", err)
	}
	if again, ok := r.body.(*bytes.Reader); ok {
		req.ContentLength = int64(again.Len())
		req.GetBody = func() (io.ReadCloser, error) { // for a connection that has just been closed
			_, err := again.Seek(0, io.SeekStart)
			return io.NopCloser(again), err
		}
	}
	maps.Copy(req.Header, r.header)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	for _, a := range accept {
		req.Header.Add("Accept", a)
	}
	if err := c.addHeaders(ctx, req.Header); err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, c.failed(err)
	}
	return resp, nil
}

// addHeaders adds the headers of [WithHeader].
func (c *Client) addHeaders(ctx context.Context, to http.Header) error {
	for _, f := range c.headers {
		more, err := f(ctx)
		if err != nil {
			return headerError(err)
		}
		maps.Copy(to, more)
	}
	return nil
}

// failed puts the error of a request without an answer into words.
func (c *Client) failed(err error) error {
	var missed *missedError
	var untrusted *tls.CertificateVerificationError
	var unknown *net.DNSError
	switch {
	case errors.As(err, &missed):
		return missed
	case errors.Is(err, http.ErrSchemeMismatch):
		return tapedeck.Errorf(tapedeck.Unavailable, "the server at %s speaks HTTP, not HTTPS", c.address()).
			WithHint("its URL begins with http://").Because(err)
	case errors.As(err, &untrusted):
		return tapedeck.Errorf(tapedeck.Unavailable, "the certificate of %s is not accepted: %w", c.address(), untrusted.Err).
			WithHint("nothing was sent to it")
	case errors.As(err, &unknown):
		return tapedeck.Errorf(tapedeck.Unavailable, "the host of %s has no address", c.address()).
			WithHint("look at the host in the URL").Because(err)
	case unheard(err):
		return tapedeck.Errorf(tapedeck.Unavailable, "the server at %s cannot be reached", c.address()).
			WithHint("is it running? start it with: tapedeck serve").Because(err)
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the connection to %s broke before the answer; whether it was done is not known", c.address()).
		WithHint("look before you do it again").Because(errors.Join(errBroken, err))
}

// errBroken is the reason of an error that says that a connection broke before the answer.
var errBroken = errors.New("the connection broke")

// headerError returns the error of a request for which a header function failed with err.
// An error of Tapedeck keeps its kind: with the kind Unavailable, the function says that
// the client can try again.
func headerError(err error) error {
	var e *tapedeck.Error
	if errors.As(err, &e) {
		return err
	}
	return tapedeck.Errorf(tapedeck.Unauthorized, "a header function failed: %v", err).Because(err)
}

// kindOf returns the kind of an error that was not written by Tapedeck, but by a proxy
// or by a check of access in front of the server.
func kindOf(status int) tapedeck.Kind {
	switch status {
	case http.StatusUnauthorized:
		return tapedeck.Unauthorized
	case http.StatusForbidden:
		return tapedeck.Forbidden
	case http.StatusNotFound:
		return tapedeck.NotFound
	case http.StatusConflict:
		return tapedeck.Conflict
	case http.StatusGone:
		return tapedeck.Gone
	case http.StatusPreconditionFailed:
		return tapedeck.Precondition
	case http.StatusRequestEntityTooLarge:
		return tapedeck.TooLarge
	case http.StatusUnsupportedMediaType:
		return tapedeck.Unsupported
	case http.StatusTooManyRequests:
		return tapedeck.Limited
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return tapedeck.Unavailable
	}
	if status < http.StatusInternalServerError {
		return tapedeck.Invalid
	}
	return tapedeck.Internal
}

// readError reads the error in an answer of the server.
func readError(resp *http.Response) error {
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 256<<10)) // what could be read is shown
	var w problem.Body
	if json.Unmarshal(body, &w) == nil && w.Error.Kind != "" {
		return &tapedeck.Error{Kind: w.Error.Kind, Message: w.Error.Message, Hint: w.Error.Hint, Problems: w.Error.Problems}
	}
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte("<")) { // a page of a proxy, for browsers
		return tapedeck.Errorf(kindOf(resp.StatusCode), "the server answered %s", resp.Status)
	}
	return tapedeck.Errorf(kindOf(resp.StatusCode), "the server answered %s: %s", resp.Status, body)
}

// call sends in as JSON, if it is not nil, and decodes the answer into out, if
// that is not nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	r := &request{query: query}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "the request cannot be encoded: %w", err)
		}
		r.body, r.contentType = bytes.NewReader(body), "application/json"
	}
	resp, err := c.send(ctx, method, path, r, []string{"application/json"})
	if err != nil {
		return err
	}
	return decode(resp, out)
}

func decode(resp *http.Response, out any) error {
	defer resp.Body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, resp.Body) // so that the connection is used again
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil && resp.StatusCode != http.StatusNoContent {
		return tapedeck.Errorf(tapedeck.Internal, "the server's answer cannot be read: %w", err)
	}
	return nil
}

const sessionsPath = "/api/v1/sessions/"

// checkSession refuses the path of a session that cannot exist. The path of an empty id
// is that of another endpoint, and the server's answer would not speak of the id.
func checkSession(path string) error {
	rest, ok := strings.CutPrefix(path, sessionsPath)
	if !ok {
		return nil
	}
	escaped, _, _ := strings.Cut(rest, "/")
	id, err := url.PathUnescape(escaped)
	if err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the session's id cannot be read").Because(err)
	}
	return tapedeck.CheckID("the session's id", id)
}

func sessionPath(id string, rest ...string) string {
	p := sessionsPath + url.PathEscape(id)
	for _, r := range rest {
		p += "/" + r
	}
	return p
}

// get requests a path and decodes the answer.
func get[T any](ctx context.Context, c *Client, path string, q url.Values) (T, error) {
	var out T
	err := c.call(ctx, http.MethodGet, path, q, nil, &out)
	return out, err
}

// post sends in as JSON, unless it is nil, and decodes the answer.
func post[T any](ctx context.Context, c *Client, path string, in any) (T, error) {
	var out T
	err := c.call(ctx, http.MethodPost, path, nil, in, &out)
	return out, err
}

func setInt(q url.Values, name string, v int64) {
	if v != 0 {
		q.Set(name, strconv.FormatInt(v, 10))
	}
}

func setString(q url.Values, name, v string) {
	if v != "" {
		q.Set(name, v)
	}
}
