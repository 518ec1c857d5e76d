package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// Limits of the HTTP endpoint.
const (
	maxBody     = 4 << 20          // bytes of a request
	maxPeers    = 1000             // clients that have initialized
	idleTimeout = 30 * time.Minute // a client without a request for this long must initialize again
)

// Headers and versions of the protocol. From the version stateless on, a client does not
// initialize: each request stands for itself.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerPeer    = "Mcp-Session-Id"
	stateless     = "2026-07-28"
)

// A handler serves the streamable HTTP transport. Clients of the versions before stateless
// have a state here, in memory: the protocol calls it a session, we call it a peer. A client
// whose peer ended gets 404, and initializes again.
type handler struct {
	*server
	ctx      context.Context // ends the streams
	peers    http.Handler    // for clients that initialize
	requests http.Handler    // for the others

	mu   sync.Mutex
	open map[string]*peer // by id
}

// A peer is a client that has initialized.
type peer struct {
	requests int // that are served now, streams included
	used     time.Time
	expire   *time.Timer
}

// New returns the handler of the HTTP endpoint. It serves until ctx is done, then it ends all
// streams and refuses requests. It does not check the origin of requests, as package server
// does that for all protocols.
func New(ctx context.Context, o Options) http.Handler {
	h := &handler{server: newServer(ctx, o), ctx: ctx, open: map[string]*peer{}}
	// Package server checks the host, too, and knows whether other names are allowed.
	options := sdk.StreamableHTTPOptions{JSONResponse: true, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true}
	get := func(*http.Request) *sdk.Server { return h.sdk }
	h.peers = identified(sdk.NewStreamableHTTPHandler(get, &options))
	options.Stateless, options.PropagateRequestCancellation = true, true
	h.requests = identified(sdk.NewStreamableHTTPHandler(get, &options))
	context.AfterFunc(ctx, h.closeAll)
	return h
}

// Routes returns the requests that the handler serves.
func (h *handler) Routes() []string { return []string{"POST /mcp", "GET /mcp", "DELETE /mcp"} }

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.ctx.Err() != nil {
		h.refuse(w, r, tapedeck.Errorf(tapedeck.Unavailable, "the server is stopping").WithHint("try again in a moment"))
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	b := newBeating(w)
	defer h.finish(w, r, b)
	if who := access.From(r.Context()); who != nil && r.Method == http.MethodPost {
		r = arrived(r)
		if who.Valid() != nil {
			return // finish refuses it
		}
	}
	id := r.Header.Get(headerPeer)
	switch {
	case r.Header.Get(headerVersion) >= stateless:
		h.requests.ServeHTTP(b, r)
	case id != "":
		defer h.begin(id)()
		h.peers.ServeHTTP(b, r)
		if r.Method == http.MethodDelete {
			h.drop(id)
		}
	default:
		if err := h.makeSpace(); err != nil {
			h.refuse(b, r, err)
			return
		}
		h.peers.ServeHTTP(b, r)
		if id = w.Header().Get(headerPeer); id != "" {
			h.add(id)
		}
	}
}

// arrived reads the body of a request, and returns the request with that body. The token may
// end before the body has arrived. The SDK reports what is wrong with the body.
func arrived(r *http.Request) *http.Request {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failed{err}
	}
	in := *r
	in.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(b), rest), r.Body}
	return &in
}

// A failed reader returns an error.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// finish ends the use of a response. The SDK answers nothing, which would be 200, if the
// context of a request ends before it: then its token was revoked, or has expired.
func (h *handler) finish(w http.ResponseWriter, r *http.Request, b *beating) {
	if b.stop() {
		return
	}
	if who := access.From(r.Context()); who != nil {
		if err := who.Valid(); err != nil {
			w.Header().Del(headerPeer)
			h.refuse(w, r, err)
		}
	}
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	problem.Write(w, r, err, h.Logger)
}

// begin notes that a peer has a request, and returns the function that notes its end.
func (h *handler) begin(id string) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.open[id]
	if p == nil { // the SDK answers that it does not know it
		return func() {}
	}
	p.requests++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		p.requests--
		h.rest(p)
	}
}

// drop forgets a peer that has ended itself.
func (h *handler) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, id)
}

// rest starts the time after which a peer expires, if it has no request. The caller has the
// lock.
func (h *handler) rest(p *peer) {
	if p.used = time.Now(); p.requests == 0 {
		p.expire.Reset(idleTimeout)
	}
}

// add adds a peer that has just initialized.
func (h *handler) add(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &peer{}
	p.expire = time.AfterFunc(idleTimeout, func() { h.end(id, p) })
	p.used = time.Now()
	h.open[id] = p
}

// end ends a peer, unless it has a request by now.
func (h *handler) end(id string, p *peer) {
	h.mu.Lock()
	if p.requests > 0 || h.open[id] != p {
		h.mu.Unlock()
		return
	}
	delete(h.open, id)
	h.mu.Unlock()
	for client := range h.sdk.Sessions() {
		if client.ID() == id {
			_ = client.Close() // it has no stream that could fail
		}
	}
}

// makeSpace ends the peer that has been idle for the longest time if there are too many. It
// returns an error if all are busy.
func (h *handler) makeSpace() error {
	h.mu.Lock()
	var oldest string
	for id, p := range h.open {
		if p.requests == 0 && (oldest == "" || p.used.Before(h.open[oldest].used)) {
			oldest = id
		}
	}
	full, p := len(h.open) >= maxPeers, h.open[oldest]
	h.mu.Unlock()
	switch {
	case !full:
		return nil
	case p == nil:
		return tapedeck.Errorf(tapedeck.Limited, "%d MCP clients have open streams; no more are served", maxPeers)
	}
	p.expire.Stop()
	h.end(oldest, p)
	return nil
}

// closeAll ends all clients and their streams.
func (h *handler) closeAll() {
	for client := range h.sdk.Sessions() {
		go func() { _ = client.Close() }() // it waits for the tool that the client has called
	}
}
