package deck

import (
	"context"
	"net/http"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/gate"
	"github.com/tapedeck/tapedeck/cluster"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/metrics"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/postgres"
)

const (
	// watchEvery is the time between two looks at the owner while another server is it.
	watchEvery = 200 * time.Millisecond

	// ownerWatchEvery is the time between two looks while this server is the owner. It counts
	// the other servers.
	ownerWatchEvery = 2 * time.Second
)

// watch tells the node who owns the database, until ctx is done.
func (m *Member) watch(ctx context.Context) {
	said := "" // the owner in the log
	for {
		every := watchEvery
		o, err := m.watcher.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.options.Logger.Debug("the owner of the database is not known", "error", err) // requests still go to the last one
		case m.isOwner():
			every = ownerWatchEvery
		default:
			m.update(&o, &said)
		}
		if n, err := m.watcher.Others(ctx); err == nil {
			m.others.Store(int64(n))
		}
		select {
		case <-ctx.Done():
			return
		case <-m.lookNow:
		case <-time.After(every):
		}
	}
}

// isOwner reports whether this server answers requests as the owner.
func (m *Member) isOwner() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deck != nil && !m.leaving
}

// update notes what the database says about its owner. said is the owner in the log.
func (m *Member) update(o *postgres.Owner, said *string) {
	if len(o.Key) > 0 {
		m.node.UseKey(o.Key)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.deck != nil && !m.leaving:
		return // this server has become the owner since the database was asked
	case o.Name == m.name:
		if m.deck == nil { // it opens its deck; what others forward to it waits until then
			m.node.NoOwner()
		}
		return
	case o.Left <= 0 || o.Name == "":
		m.node.NoOwner()
		return
	}
	err := m.node.Follow(cluster.Owner{Name: o.Name, Address: o.Address})
	if err != nil {
		m.node.NoOwner()
	}
	if *said != o.Name && err != nil {
		m.options.Logger.Error("another server owns the database, and requests cannot be forwarded to it: it has not said where it is reached", "owner", o.Name)
	} else if *said != o.Name {
		m.options.Logger.Info("another server owns the database; requests are forwarded to it", "owner", o.Name, "address", o.Address)
	}
	*said = o.Name
	m.join()
	select {
	case m.followed <- struct{}{}:
	default:
	}
}

// A clusterMeter measures what the node forwards.
type clusterMeter struct{ figures *metrics.Cluster }

// Forwarded implements [cluster.Meter].
func (c clusterMeter) Forwarded(o cluster.Outcome) { c.figures.Forwarded(string(o)) }

// Waits implements [cluster.Meter].
func (c clusterMeter) Waits(delta int) { c.figures.Waits(delta) }

// Metrics returns what [Deck.Metrics] does. While another server owns the database, only the
// figures of this process are there.
func (m *Member) Metrics() http.Handler {
	if m.figures == nil {
		return http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d := m.Deck(); d != nil {
			d.Metrics().ServeHTTP(w, r)
			return
		}
		m.figures.Handler().ServeHTTP(w, r)
	})
}

// admin serves what is about this process while another server owns the database, with the
// same checks as a deck.
func (m *Member) admin() http.Handler {
	o := &m.options
	out := server.Options{
		REST: http.NotFoundHandler(), Durable: http.NotFoundHandler(), Admin: adminMux(m.figures.Handler(), o.Logger),
		AllowOrigins: o.AllowOrigins, AnyHost: o.AnyHost, AllowHosts: o.AllowHosts, Logger: o.Logger,
	}
	if o.Access != nil {
		out.Authenticate = gate.New(o.Logger, o.Access.Verifiers...).Authenticate
		out.Admin = onlyAdmins(out.Admin, o)
	}
	return server.New(out)
}

func onlyAdmins(next http.Handler, o *Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := access.From(r.Context()); who == nil || !who.IsUnlimited() {
			problem.Write(w, r, tapedeck.Errorf(tapedeck.Forbidden, "metrics and profiles are for admins"), o.Logger)
			return
		}
		next.ServeHTTP(w, r)
	})
}
