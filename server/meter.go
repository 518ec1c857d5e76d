package server

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/secret"
)

// A Meter measures requests. Its methods may be called by several goroutines.
type Meter interface {
	Began(protocol string)   // a request begins
	Streams(protocol string) // the answer to a request that has begun is a stream, or the request becomes a WebSocket

	// Ended is called at the end of each request, with the status of its answer, and
	// whether Streams was called for it.
	Ended(protocol string, status int, took time.Duration, stream bool)
}

// roots are what paths of protocols begin with. The first that fits counts.
var roots = []struct{ path, protocol string }{
	{"/v1/stream", "durable-streams"}, {"/api/v1/", "http"}, {"/api/a2a/", "a2a"}, {"/api/", "http"}, {taskRoot + "/", "task"}, {channelsRoot + "/", "channels"}, {"/mcp", "mcp"},
	{"/agui/", "ag-ui"}, {"/copilotkit", "ag-ui"}, {"/aisdk/", "ai-sdk"}, {"/a2a/", "a2a"}, {"/.well-known/agent", "a2a"},
}

// otherProtocol stands for the screen and everything else that no protocol has.
const otherProtocol = "other"

// protocolOf returns the name of the protocol of a path.
func protocolOf(path string) string {
	for _, r := range roots {
		if strings.HasPrefix(path, r.path) {
			return r.protocol
		}
	}
	return otherProtocol
}

// A measured response sees the status of an answer, and whether it is a stream.
type measured struct {
	http.ResponseWriter
	front    *front
	request  *http.Request
	protocol string
	began    time.Time
	status   int // 0 before the header is written
	stream   bool
	traced   func(status int) // ends the trace; nil for none
	reason   string           // why the request was refused; "" for none that is known
}

// Explain implements [problem.Explained].
func (m *measured) Explain(e *tapedeck.Error) { m.reason = e.Message }

// measure begins to measure a request. Call end when it is answered.
func (f *front) measure(w http.ResponseWriter, r *http.Request) *measured {
	m := &measured{ResponseWriter: w, front: f, request: r, protocol: protocolOf(r.URL.Path), began: time.Now()}
	if f.Meter != nil {
		f.Meter.Began(m.protocol)
	}
	return m
}

// WriteHeader implements [http.ResponseWriter].
func (m *measured) WriteHeader(status int) {
	m.see(status)
	m.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (m *measured) Write(b []byte) (int, error) {
	m.see(http.StatusOK)
	return m.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher] for those who do not use an [http.ResponseController].
func (m *measured) Flush() {
	m.see(http.StatusOK)
	_ = http.NewResponseController(m.ResponseWriter).Flush() // a writer that cannot flush has nothing to wait for
}

// Unwrap is for [http.ResponseController], and for who hijacks the connection.
func (m *measured) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// see notes the status of the answer. An informational status is not the last one, except
// that of a WebSocket.
func (m *measured) see(status int) {
	if m.status != 0 || status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	m.status = status
	m.stream = status == http.StatusSwitchingProtocols || strings.HasPrefix(first(m.Header()["Content-Type"]), "text/event-stream")
	if m.stream && m.front.Meter != nil {
		m.front.Meter.Streams(m.protocol)
	}
}

// fail notes that the handler has panicked, so that the client gets no whole answer.
func (m *measured) fail() {
	if m != nil {
		m.see(http.StatusInternalServerError)
		m.status = http.StatusInternalServerError
	}
}

func (m *measured) end() {
	m.see(http.StatusOK) // what net/http sends for a handler that writes nothing
	took := time.Since(m.began)
	if m.front.Meter != nil {
		m.front.Meter.Ended(m.protocol, m.status, took, m.stream)
	}
	if m.traced != nil {
		m.traced(m.status)
	}
	if m.status == http.StatusUnauthorized {
		m.front.refusals.log(m.request, m.reason)
	}
	if f := m.front; f.Refused != nil && (m.status == http.StatusUnauthorized || m.status == http.StatusForbidden) {
		f.Refused(m.request, m.status)
	}
	if m.front.logs {
		m.log(took)
	}
}

func (m *measured) log(took time.Duration) {
	r := m.request
	attrs := []slog.Attr{
		slog.String("method", secret.Cut(r.Method)), slog.String("path", secret.Path(r)),
		slog.String("protocol", m.protocol), slog.Int("status", m.status), slog.Duration("took", took),
	}
	if id := first(r.Header[requestID]); id != "" {
		attrs = append(attrs, slog.String("id", id))
	}
	if m.front.About != nil {
		sender, session := m.front.About(r)
		for _, a := range [...]slog.Attr{slog.String("sender", sender), slog.String("session", secret.Cut(session))} {
			if a.Value.String() != "" {
				attrs = append(attrs, a)
			}
		}
	}
	level := slog.LevelDebug
	if m.front.LogRequests && (m.status >= 400 || !isProbe(r)) { // probes, and each command, ask all the time
		level = slog.LevelInfo
	}
	m.front.Logger.LogAttrs(r.Context(), level, "a request was answered", append(attrs, slog.String("from", intake.Address(r)))...)
}

// requestID is the header with the id that a client or a proxy gives a request.
const requestID = "X-Request-Id"

// maxRequestID is the largest length of such an id, in bytes.
const maxRequestID = 128

// keepID answers with the id of a request, and removes one that does not belong into a
// log. What is logged has an id: a log-in, and each request if all are logged.
func (f *front) keepID(w http.ResponseWriter, r *http.Request) {
	values, ok := r.Header[requestID]
	switch {
	case ok && len(values) == 1 && isRequestID(values[0]):
		w.Header()[requestID] = values
		return
	case ok:
		delete(r.Header, requestID)
	}
	if f.logs || r.URL.Path == "/login" {
		giveID(w, r)
	}
}

// giveID gives a request an id, unless it has one.
func giveID(w http.ResponseWriter, r *http.Request) {
	if r.Header[requestID] == nil {
		id := []string{problem.ID(r)}
		r.Header[requestID], w.Header()[requestID] = id, id
	}
}

func isRequestID(s string) bool {
	for i := range len(s) {
		c := s[i]
		if ('a' > c || c > 'z') && ('A' > c || c > 'Z') && ('0' > c || c > '9') && !strings.ContainsRune("-_.:/+=@", rune(c)) {
			return false
		}
	}
	return s != "" && len(s) <= maxRequestID && secret.Cut(s) == s
}

// recovered is deferred by ServeHTTP. It logs a panic of a handler, and closes the
// connection: the response may have begun, and the client must see that it is incomplete.
// It also ends the measurement, if there is one: each defer in ServeHTTP makes the stack of
// every follower larger.
func (o *Options) recovered(r *http.Request, m *measured) {
	if m != nil {
		defer m.end()
	}
	p := recover()
	if p == nil {
		return
	}
	m.fail()
	if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		o.Logger.Error("a request failed", "id", problem.ID(r), "method", secret.Cut(r.Method), "path", secret.Path(r), "panic", p, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}
