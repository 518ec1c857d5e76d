package deck

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cluster"
	"github.com/tapedeck/tapedeck/metrics"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// A Member is one of several servers of a PostgreSQL database. Each answers every request:
// the one that owns the database has a [Deck], the others forward to it. When the owner
// ends, another one opens a deck. Its methods may be called by several goroutines.
type Member struct {
	dir      string
	options  Options
	opened   func(*Deck)
	node     *cluster.Node
	http     *http.Server
	figures  *metrics.Cluster // nil with [Options.NoMetrics]
	instance string
	lost     chan error
	joined   chan struct{} // closed when this or another server owns the database
	joinOnce sync.Once

	stop  context.CancelFunc // ends run
	ended chan struct{}      // closed when run has ended

	unwatch  context.CancelFunc // ends watch
	watched  sync.WaitGroup
	followed chan struct{} // has a value when another server owns the database
	watcher  *postgres.Watch
	others   atomic.Int64  // number of other servers
	lookNow  chan struct{} // makes watch look at once

	closing sync.Once

	mu      sync.Mutex
	deck    *Deck  // nil if this server does not own the database
	leaving bool   // it closes its deck
	name    string // under which it owns the database, or tries to
}

// Join opens the data folder dir of one of several servers, and returns when it owns the
// database of [Options.Postgres], or, with its Standby, when another server does. Without
// Standby it is an error if another server owns the database. opened is called with each
// deck, before it gets requests; nil for nothing. Join needs an Address in Options.Postgres
// if other servers should forward requests to this one. Call [Member.Close] at the end.
func Join(ctx context.Context, dir string, o Options, opened func(*Deck)) (_ *Member, err error) {
	if o.Postgres == nil || o.InMemory {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "only sessions in PostgreSQL can have several servers").WithHint("set Options.Postgres")
	}
	if o.Postgres.Address != "" {
		if _, err := cluster.ParseAddress(o.Postgres.Address); err != nil {
			return nil, err
		}
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	if opened == nil {
		opened = func(*Deck) {}
	}
	m := &Member{
		options: o, opened: opened, instance: tapedeck.NewID("srv_"), lost: make(chan error, 1), joined: make(chan struct{}),
		ended: make(chan struct{}), followed: make(chan struct{}, 1), lookNow: make(chan struct{}, 1),
	}
	if m.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if m.watcher, err = postgres.NewWatch(*o.Postgres); err != nil {
		return nil, err
	}
	if o.Lock == nil {
		if m.options.Lock, err = sqlite.TakeLock(m.dir); err != nil {
			return nil, err
		}
	}
	m.options.member = m
	m.open()
	return m, m.await(ctx)
}

// open starts the goroutines.
func (m *Member) open() {
	o := &m.options
	n := cluster.Options{Instance: m.instance, Logger: o.Logger}
	if !o.NoMetrics {
		m.figures = metrics.NewCluster(o.Version)
		n.Meter, n.Admin = clusterMeter{m.figures}, m.admin()
	}
	m.node = cluster.New(n)
	m.http = server.NewHTTP(m.node, o.Logger)
	var run, watch context.Context
	run, m.stop = context.WithCancel(context.Background())
	watch, m.unwatch = context.WithCancel(context.Background())
	if o.Postgres.Standby {
		m.watched.Go(func() { m.watch(watch) })
	}
	go m.run(run)
}

// await waits until it is known who owns the database.
func (m *Member) await(ctx context.Context) (err error) {
	select {
	case <-m.joined:
		return nil
	case err = <-m.lost:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, m.Close(context.WithoutCancel(ctx)))
}

// reopenEvery is the time between two attempts to own a database that cannot be used.
const reopenEvery = time.Second

// run owns the database whenever it can, until ctx is done.
func (m *Member) run(ctx context.Context) {
	defer close(m.ended)
	for ctx.Err() == nil {
		d, err := m.openDeck(ctx)
		switch {
		case ctx.Err() != nil && d == nil:
			return
		case err != nil && (!m.isJoined() || !m.options.Postgres.Standby || postgres.IsFinal(err)):
			m.lost <- err
			return
		case err != nil:
			m.options.Logger.Error("this server cannot take the database over; trying again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(reopenEvery):
			}
			continue
		}
		m.own(d)
		select {
		case <-ctx.Done():
			return
		case err = <-d.Lost():
		}
		m.node.NoOwner()
		m.disown()
		d.cutStreams() // their clients come back, and are forwarded
		_ = d.Close(context.WithoutCancel(ctx))
		if !m.options.Postgres.Standby {
			m.lost <- err
			return
		}
	}
}

func (m *Member) openDeck(ctx context.Context) (*Deck, error) {
	o := m.options
	pg := *o.Postgres
	pg.Name = postgres.NewName()
	o.Postgres = &pg
	m.mu.Lock()
	m.name = pg.Name
	m.mu.Unlock()
	d, err := Open(ctx, m.dir, o)
	if err != nil {
		return nil, err
	}
	w, err := postgres.NewWatch(pg)
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	defer w.Close()
	owner, err := w.Look(ctx)
	if err != nil {
		return nil, errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	m.node.UseKey(owner.Key)
	return d, nil
}

// own lets the deck answer the requests.
func (m *Member) own(d *Deck) {
	m.opened(d)
	if m.figures != nil {
		m.figures.Owns(true)
	}
	m.options.Logger.Info("this server owns the database")
	m.mu.Lock()
	m.deck = d
	m.node.Own(cluster.Local{Handler: d.Handler(), Name: m.name, Owns: d.owns}) // locked: watch may have older news
	m.mu.Unlock()
	m.join()
}

// disown notes that this server does not own the database any more.
func (m *Member) disown() {
	m.mu.Lock()
	m.deck = nil
	m.mu.Unlock()
	if m.figures != nil {
		m.figures.Owns(false)
	}
}

func (m *Member) join() { m.joinOnce.Do(func() { close(m.joined) }) }

func (m *Member) isJoined() bool {
	select {
	case <-m.joined:
		return true
	default:
		return false
	}
}

// adopt gives a deck what it shares with the member. A nil member shares nothing.
func (m *Member) adopt(d *Deck) {
	if m == nil {
		return
	}
	d.instance = m.instance
	if d.operator != nil {
		d.operator.metrics.Include(m.figures)
	}
}

// Deck returns the deck of this server, nil while it does not own the database.
func (m *Member) Deck() *Deck {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deck
}

// Handler returns the handler that answers every request.
func (m *Member) Handler() http.Handler { return m.node }

// Instance returns the id of this server; GET /healthz returns it.
func (m *Member) Instance() string { return m.instance }

// Lost returns a channel that receives an error when this server can neither own the
// database nor forward to its owner. Close it then.
func (m *Member) Lost() <-chan error { return m.lost }

// Followers returns how many streams follow a session of the deck of this server now.
func (m *Member) Followers() int {
	if d := m.Deck(); d != nil {
		return d.Followers()
	}
	return 0
}

// Serve accepts connections on l until [Member.Close], then it returns nil.
func (m *Member) Serve(l net.Listener) error {
	if err := server.Serve(m.http, l, m.options.MaxConnections, m.options.Logger); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
