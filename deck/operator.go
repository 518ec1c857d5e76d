package deck

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/metrics"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/tail"
)

// An operator measures a deck, and shows the figures. A nil operator measures nothing.
type operator struct {
	deck    *Deck
	metrics *metrics.Metrics
	started time.Time
	store   func() api.StoreStats
}

func newOperator(d *Deck) *operator {
	return &operator{deck: d, metrics: metrics.New(d.options.Version), started: time.Now()}
}

// measure returns what the store calls after each group, nil for nothing.
func (d *Deck) measure() func(store.Group) {
	if d.operator == nil {
		return nil
	}
	return d.operator.metrics.Wrote
}

// begin begins to measure. The store and the engine are open, and nothing was appended.
func (o *operator) begin(ctx context.Context, figures func() api.StoreStats) error {
	if o == nil {
		return nil
	}
	o.store = figures
	o.deck.hub.Observe(o.metrics.Observer())
	if err := o.metrics.Load(ctx, o.deck.hub); err != nil {
		return err
	}
	o.metrics.Read(o.stats)
	return nil
}

// serve mounts what an admin sees in a server.
func (o *operator) serve(s *server.Options) {
	if o == nil {
		return
	}
	m := adminMux(o.metrics.Handler(), o.deck.options.Logger)
	o.deck.mounted = append(o.deck.mounted, m)
	s.Meter, s.Admin = o.metrics, o.deck.forAdmins(m, "metrics and profiles are", false)
}

// adminMux serves what is about a process.
func adminMux(figures http.Handler, log *slog.Logger) *httpapi.Mux {
	m := httpapi.NewMux("", log)
	m.Handle(http.MethodGet, "/metrics", func(w http.ResponseWriter, r *http.Request) error {
		figures.ServeHTTP(w, r)
		return nil
	})
	m.Handle(http.MethodGet, "/debug/pprof/{profile}", profile)
	return m
}

// profile answers with a profile of the process, for go tool pprof. The command line is
// left out, because it may have a password.
func profile(w http.ResponseWriter, r *http.Request) error {
	switch name := r.PathValue("profile"); {
	case name == "profile":
		pprof.Profile(w, r)
	case name == "trace":
		pprof.Trace(w, r)
	case name == "symbol":
		pprof.Symbol(w, r)
	case runtimepprof.Lookup(name) != nil:
		pprof.Handler(name).ServeHTTP(w, r)
	default:
		return tapedeck.Errorf(tapedeck.NotFound, "there is no profile %q", name).WithHint("use profile, heap, goroutine, allocs, block, mutex, threadcreate or trace")
	}
	return nil
}

// stats describes the deck as of now.
func (o *operator) stats() api.Stats {
	d := o.deck
	s := api.Stats{
		Version: d.options.Version, Instance: d.instance, Started: o.started.UTC().Truncate(time.Millisecond), Store: o.store(),
		Followers: api.FollowerStats{Open: d.hub.Followers(), Behind: d.hub.Behind()},
		Search:    api.SearchStats{Behind: d.search.Behind()},
		Bodies:    d.bodies.Held(),
	}
	s.Runs.Driven = d.engine.Running()
	o.metrics.Complete(&s)
	return s
}

// Stats returns what [Deck.Stats] does.
func (o *operator) Stats(context.Context) (api.Stats, error) { return o.stats(), nil }

// Stats describes the deck since it was opened: its store, runs, followers and requests.
// With [Options.NoMetrics] it is the zero value.
func (d *Deck) Stats() api.Stats {
	if d.operator == nil {
		return api.Stats{}
	}
	return d.operator.stats()
}

// Metrics returns a handler that answers every request with the figures of the deck in the
// text format of Prometheus. It asks for no token: serve it where only your monitoring
// reaches it. With [Options.NoMetrics] it answers 404.
func (d *Deck) Metrics() http.Handler {
	if d.operator == nil {
		return http.NotFoundHandler()
	}
	return d.operator.metrics.Handler()
}

// storeStats returns the figures of a store and of the cache on it.
func storeStats(kind string, f store.Figures, recent *tail.Cache) api.StoreStats {
	s := api.StoreStats{Kind: kind, Queue: f.Queue, LogBytes: f.LogBytes, DataBytes: f.DataBytes, Cached: f.Hot, Damaged: f.Damaged}
	s.TailBytes, s.TailHits, s.TailMisses = recent.Figures()
	return s
}
