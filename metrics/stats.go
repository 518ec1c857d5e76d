package metrics

import (
	"runtime"
	"runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tapedeck/tapedeck/api"
)

// Complete fills in the part of the statistics that is counted here. The caller has
// filled in the rest.
func (m *Metrics) Complete(s *api.Stats) {
	group, commit := read(m.group).GetHistogram(), read(m.commit).GetHistogram()
	s.Store.Groups, s.Store.GroupSeconds = int64(group.GetSampleCount()), group.GetSampleSum()
	s.Store.CommitSeconds = commit.GetSampleSum()
	s.Store.Requests = int64(read(m.size).GetHistogram().GetSampleSum())
	s.Store.Failures = count(m.failures)
	s.Store.Events, s.Store.Bytes = count(m.events), count(m.bytes)
	s.Requests = m.requestStats()
	s.Runs.Running, s.Runs.Waiting, s.Runs.Inputs = m.runs.now()
	s.Runs.Ended = map[string]int64{}
	for _, o := range outcomes {
		ended, _ := m.runs.seconds.GetMetricWithLabelValues(string(o)) // the number of values is right
		s.Runs.Ended[string(o)] = int64(read(ended.(prometheus.Metric)).GetHistogram().GetSampleCount())
	}
	live := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}} // runtime.ReadMemStats would stop the world
	metrics.Read(live)
	s.Heap, s.Goroutines = int64(live[0].Value.Uint64()), runtime.NumGoroutine()
}

func read(m prometheus.Metric) *dto.Metric {
	var out dto.Metric
	_ = m.Write(&out) // fails only for labels that are no UTF-8; ours are constants
	return &out
}

func count(c prometheus.Counter) int64 { return int64(read(c).GetCounter().GetValue()) }

// A gauge is a figure that is read when somebody asks.
type gauge struct {
	*prometheus.Desc
	value func(*api.Stats) int64
	kind  prometheus.ValueType
}

func newGauge(name, help string, value func(*api.Stats) int64) gauge {
	return gauge{prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, nil), value, prometheus.GaugeValue}
}

// counting makes g a counter.
func (g gauge) counting() gauge {
	g.kind = prometheus.CounterValue
	return g
}

// A reader is a collector of the gauges.
type reader struct {
	figures func() api.Stats
	gauges  []gauge
}

// Read registers the figures that have a value only now. The function returns them; it
// is called for each answer of the handler, and must be quick.
func (m *Metrics) Read(figures func() api.Stats) {
	m.registry.MustRegister(&reader{figures, []gauge{
		newGauge("followers_open", "Streams that follow a session, of all protocols.", func(s *api.Stats) int64 { return int64(s.Followers.Open) }),
		newGauge("followers_behind", "Streams that have not got everything that there is.", func(s *api.Stats) int64 { return int64(s.Followers.Behind) }),
		newGauge("runs_running", "Open runs of sessions that do not wait for people.", func(s *api.Stats) int64 { return int64(s.Runs.Running) }),
		newGauge("runs_waiting", "Open runs of sessions that wait for an answer of people.", func(s *api.Stats) int64 { return int64(s.Runs.Waiting) }),
		newGauge("runs_driven", "Open runs whose agents this server runs.", func(s *api.Stats) int64 { return int64(s.Runs.Driven) }),
		newGauge("inputs_waiting", "Inputs that wait for a free thread.", func(s *api.Stats) int64 { return int64(s.Runs.Inputs) }),
		newGauge("search_behind", "Sessions with events that were not indexed when the search index was last looked at.", func(s *api.Stats) int64 { return int64(s.Search.Behind) }),
		newGauge("queue_requests", "Requests that wait for the writer of the store.", func(s *api.Stats) int64 { return int64(s.Store.Queue) }),
		newGauge("log_bytes", "Size of the write-ahead log of SQLite.", func(s *api.Stats) int64 { return s.Store.LogBytes }),
		newGauge("data_bytes", "Size of the database of SQLite, without its write-ahead log and the search index.", func(s *api.Stats) int64 { return s.Store.DataBytes }),
		newGauge("cached_sessions", "Sessions whose state the writer has in memory.", func(s *api.Stats) int64 { return int64(s.Store.Cached) }),
		newGauge("damaged_events_total", "Damaged events that readers have asked for, each counted once.", func(s *api.Stats) int64 { return int64(s.Store.Damaged) }).counting(),
		newGauge("tail_bytes", "Memory that the newest events of sessions take.", func(s *api.Stats) int64 { return s.Store.TailBytes }),
		newGauge("tail_hits_total", "Reads of events that this memory answered.", func(s *api.Stats) int64 { return s.Store.TailHits }).counting(),
		newGauge("tail_misses_total", "Reads of events that went to the database.", func(s *api.Stats) int64 { return s.Store.TailMisses }).counting(),
		newGauge("body_bytes", "Memory that bodies of requests take.", func(s *api.Stats) int64 { return s.Bodies }),
	}})
}

// Describe implements [prometheus.Collector].
func (r *reader) Describe(out chan<- *prometheus.Desc) {
	for _, g := range r.gauges {
		out <- g.Desc
	}
}

// Collect implements [prometheus.Collector].
func (r *reader) Collect(out chan<- prometheus.Metric) {
	s := r.figures()
	for _, g := range r.gauges {
		out <- prometheus.MustNewConstMetric(g.Desc, g.kind, float64(g.value(&s)))
	}
}
