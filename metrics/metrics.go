// Package metrics counts and measures what a server does: for Prometheus, and for the
// statistics of the HTTP API. No figure has a label with the id of a session, a subject
// or anything else that clients choose, so their number is bounded.
//
// What happens often (requests, groups of the store, commits) is counted when it happens.
// What only has a value now (queues, sizes) is read when somebody asks.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tapedeck/tapedeck/store"
)

// namespace begins the names of our metrics.
const namespace = "tapedeck"

// Metrics are the figures of one server. The methods may be called by several goroutines.
type Metrics struct {
	registry *prometheus.Registry
	cluster  *Cluster             // nil if the server is alone
	requests map[string]*requests // by protocol
	runs     *runs

	group, commit prometheus.Histogram
	size          prometheus.Histogram
	failures      prometheus.Counter
	events, bytes prometheus.Counter
}

// New returns the figures of a server of a version, all of them 0.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), requests: newRequests(), runs: newRuns(),
		group:    histogram("group_seconds", "Time that the store takes for a group of requests, from the first decision until readers see the result.", quick),
		commit:   histogram("commit_seconds", "Time that the commit of a group takes, with its fsync.", quick),
		size:     histogram("group_requests", "Requests that the store writes in one commit.", prometheus.ExponentialBuckets(1, 2, 11)),
		failures: counter("group_failures_total", "Groups of requests that could not be stored."),
		events:   counter("events_total", "Events and messages of streams that were appended."),
		bytes:    counter("event_bytes_total", "Size of the events and messages that were appended."),
	}
	m.registry.MustRegister(buildInfo(version), m.group, m.commit, m.size, m.failures, m.events, m.bytes, m.runs.seconds,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, r := range m.requests {
		m.registry.MustRegister(r.collectors()...)
	}
	return m
}

func buildInfo(version string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the label has the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	g.Set(1)
	return g
}

// quick are the buckets of times from 50 µs to 13 s.
var quick = prometheus.ExponentialBuckets(50e-6, 2, 19)

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

// Wrote measures a group of a store.
func (m *Metrics) Wrote(g store.Group) {
	m.group.Observe(g.Took.Seconds())
	m.size.Observe(float64(g.Requests))
	if g.Commit > 0 {
		m.commit.Observe(g.Commit.Seconds())
	}
	if g.Failed {
		m.failures.Inc()
	}
}

// Handler returns the handler of GET /metrics.
func (m *Metrics) Handler() http.Handler {
	if m.cluster != nil {
		return handlerOf(prometheus.Gatherers{m.registry, m.cluster.registry})
	}
	return handlerOf(m.registry)
}
