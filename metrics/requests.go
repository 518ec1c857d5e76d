package metrics

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// Protocols are the values of the label protocol. A request for anything else, such as
// the screen, is other.
var Protocols = []string{"a2a", "ag-ui", "ai-sdk", "durable-streams", "http", "mcp", "other", "task"}

// requests are the figures of the requests of one protocol.
type requests struct {
	seconds       prometheus.Histogram
	open, streams atomic.Int64 // a prometheus.Gauge is a float, which costs more to count
	errors        map[tapedeck.Kind]prometheus.Counter
	gauges        []prometheus.Collector // of open and streams
}

func newRequests() map[string]*requests {
	all := map[string]*requests{}
	for _, protocol := range Protocols {
		labels := prometheus.Labels{"protocol": protocol}
		r := &requests{
			seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
				Namespace: namespace, Name: "request_seconds", ConstLabels: labels, Buckets: quick,
				Help: "Time from the head of a request to the end of its answer, without streams and WebSockets.",
			}),
			errors: map[tapedeck.Kind]prometheus.Counter{},
		}
		r.gauges = []prometheus.Collector{
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Namespace: namespace, Name: "requests_open", ConstLabels: labels, Help: "Requests without a complete answer, streams included.",
			}, func() float64 { return float64(r.open.Load()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Namespace: namespace, Name: "streams_open", ConstLabels: labels, Help: "Streams of Server-Sent Events and WebSockets that are open.",
			}, func() float64 { return float64(r.streams.Load()) }),
		}
		for _, kind := range problem.Kinds() {
			r.errors[kind] = prometheus.NewCounter(prometheus.CounterOpts{
				Namespace: namespace, Name: "request_errors_total", Help: "Answers whose status is an error, by the kind of the error.",
				ConstLabels: prometheus.Labels{"protocol": protocol, "kind": string(kind)},
			})
		}
		all[protocol] = r
	}
	return all
}

func (r *requests) collectors() []prometheus.Collector {
	out := append([]prometheus.Collector{r.seconds}, r.gauges...)
	for _, c := range r.errors {
		out = append(out, c)
	}
	return out
}

// of returns the figures of a protocol.
func (m *Metrics) of(protocol string) *requests {
	if r := m.requests[protocol]; r != nil {
		return r
	}
	return m.requests["other"]
}

// Began counts a request of a protocol. Call [Metrics.Ended] when it is answered.
func (m *Metrics) Began(protocol string) { m.of(protocol).open.Add(1) }

// Streams counts a request that has begun as a stream.
func (m *Metrics) Streams(protocol string) { m.of(protocol).streams.Add(1) }

// Ended counts the end of a request, with the status of its answer, and whether it was
// counted as a stream.
func (m *Metrics) Ended(protocol string, status int, took time.Duration, stream bool) {
	r := m.of(protocol)
	r.open.Add(-1)
	if stream {
		r.streams.Add(-1)
	} else {
		r.seconds.Observe(took.Seconds())
	}
	if kind := problem.KindOf(status); kind != "" {
		r.errors[kind].Inc()
	}
}

// requestStats returns the figures of the protocols that had requests.
func (m *Metrics) requestStats() []api.ProtocolStats {
	out := []api.ProtocolStats{}
	for protocol, r := range m.requests {
		answered := read(r.seconds).GetHistogram()
		s := api.ProtocolStats{
			Protocol: protocol, Open: r.open.Load(), Streams: r.streams.Load(),
			Answered: int64(answered.GetSampleCount()), Seconds: answered.GetSampleSum(),
		}
		for kind, c := range r.errors {
			if n := count(c); n > 0 {
				if s.Errors == nil {
					s.Errors = map[string]int64{}
				}
				s.Errors[string(kind)] = n
			}
		}
		if s.Open > 0 || s.Answered > 0 || s.Errors != nil {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b api.ProtocolStats) int { return cmp.Compare(a.Protocol, b.Protocol) })
	return out
}
