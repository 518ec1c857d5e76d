// Package telemetry makes spans of OpenTelemetry from what a server does: of requests
// that come with a trace, of the appends in them, and of runs with their tools and calls
// of models. The spans of a run are made from its events when it ends, so a run that a
// crash interrupted has whole spans, too. No span has the content of messages.
package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tapedeck/tapedeck"
)

// Options of a [Tracer]. Provider and Log are required.
type Options struct {
	Provider trace.TracerProvider
	Log      Log

	// AllRequests also traces requests that come without a trace. Without it they cost
	// nothing.
	AllRequests bool
	Logger      *slog.Logger // nil for none
}

// A Log has the events of the runs.
type Log interface {
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
}

// A Tracer makes spans. Its methods may be called by several goroutines.
type Tracer struct {
	Options
	tracer trace.Tracer

	mu    sync.Mutex
	open  map[int64][]tapedeck.OpenRun // by the gen of the session
	ended []ended                      // runs without spans yet
	lost  int                          // runs that get none, see maxEnded
	wake  chan struct{}                // has an element when a run has ended
	turn  chan struct{}                // has an element while a goroutine makes spans
}

// New returns a tracer.
func New(o Options) *Tracer {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Tracer{
		Options: o, tracer: o.Provider.Tracer("github.com/tapedeck/tapedeck"),
		open: map[int64][]tapedeck.OpenRun{}, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
	}
}

// w3c reads and writes the header traceparent.
var w3c propagation.TraceContext

// Request begins the span of a request, if it comes with a trace that is recorded. It
// returns the request with the span in its context, and a function to call at the end.
func (t *Tracer) Request(r *http.Request, protocol string) (traced *http.Request, end func(status int)) {
	if !t.AllRequests && len(r.Header["Traceparent"]) == 0 {
		return r, nil
	}
	ctx := w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	if !t.AllRequests && !trace.SpanContextFromContext(ctx).IsSampled() {
		return r, nil
	}
	ctx, span := t.tracer.Start(ctx, r.Method+" "+protocol, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path), attribute.String("tapedeck.protocol", protocol),
	))
	if id := r.Header.Get("X-Request-Id"); id != "" {
		span.SetAttributes(attribute.String("tapedeck.request.id", id))
	}
	return r.WithContext(ctx), func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Parent returns the trace of a context as a traceparent, "" if it has none that is
// recorded. The spans of a run that begins with it belong to that trace.
func Parent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	header := propagation.MapCarrier{}
	w3c.Inject(ctx, header)
	return header["traceparent"]
}

// Layer returns a store with a span for each append of a request that is traced. The span
// ends when the append is durable.
func (t *Tracer) Layer(s tapedeck.Store) tapedeck.Store { return &layer{s, t} }

type layer struct {
	tapedeck.Store
	t *Tracer
}

// Append implements [tapedeck.Log].
func (l *layer) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return l.Store.Append(ctx, a)
	}
	ctx, span := l.t.tracer.Start(ctx, "append", trace.WithAttributes(attribute.String("tapedeck.session.id", a.Session), attribute.Int("tapedeck.events", len(a.Events)+len(a.Chunks))))
	done, err := l.Store.Append(ctx, a)
	if err != nil {
		span.SetAttributes(attribute.String("error.type", string(tapedeck.KindOf(err))))
		span.SetStatus(codes.Error, "")
	} else {
		span.SetAttributes(attribute.Int64("tapedeck.offset.first", done.First), attribute.Int64("tapedeck.offset.next", done.Next))
	}
	span.End()
	return done, err
}
