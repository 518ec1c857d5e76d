package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Cluster are the figures of a server that is one of several. They live as long as its
// process, while it opens and closes a store each time it owns the database. The methods may
// be called by several goroutines.
type Cluster struct {
	registry, process *prometheus.Registry
	forwarded         *prometheus.CounterVec
	waiting, owner    prometheus.Gauge
}

// NewCluster returns the figures of a server of a version.
func NewCluster(version string) *Cluster {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	}
	c := &Cluster{
		registry: prometheus.NewRegistry(), process: prometheus.NewRegistry(),
		forwarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "forwarded_requests_total", Help: "Requests for the server that owns the database, by what became of them.",
		}, []string{"outcome"}),
		waiting: gauge("waiting_requests", "Requests that wait because no server owns the database, or its owner cannot be reached."),
		owner:   gauge("owner", "1 if this server owns the database, 0 if another one does or none."),
	}
	for _, outcome := range []string{"answered", "uncertain", "refused"} {
		c.forwarded.WithLabelValues(outcome)
	}
	c.registry.MustRegister(c.forwarded, c.waiting, c.owner)
	c.process.MustRegister(buildInfo(version), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return c
}

// Forwarded counts a request with its outcome.
func (c *Cluster) Forwarded(outcome string) { c.forwarded.WithLabelValues(outcome).Inc() }

// Waits notes that so many more requests wait.
func (c *Cluster) Waits(delta int) { c.waiting.Add(float64(delta)) }

// Owns notes whether this server owns the database.
func (c *Cluster) Owns(owns bool) {
	c.owner.Set(0)
	if owns {
		c.owner.Set(1)
	}
}

// Handler returns the handler of GET /metrics of a server that does not own the database.
func (c *Cluster) Handler() http.Handler {
	return handlerOf(prometheus.Gatherers{c.registry, c.process})
}

// Include adds the figures of the cluster to those of the server. Call it before Handler.
func (m *Metrics) Include(c *Cluster) { m.cluster = c }

func handlerOf(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{CoalesceGather: true})
}
