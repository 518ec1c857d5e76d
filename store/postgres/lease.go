package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
)

// A lease makes this server the only one that writes. It is a row of the table owner,
// renewed all the time, and its end is a time of the database's clock: clocks of servers
// may differ. The lease only says when another server may take over. That the older one
// writes nothing afterwards does not depend on any clock: each commit compares the epoch,
// see sqlFence.
type lease struct {
	target *target
	name   string
	ttl    time.Duration

	epoch atomic.Int64 // only the writer and take change it
	begun time.Time
	until atomic.Int64 // nanoseconds after begun until which no other server can own the database

	failed atomic.Int64 // nanoseconds after begun at which a renewal failed last; 0 for none

	skip bool // for tests: act as if the process were stopped, and do not renew; guarded by mu

	mu   sync.Mutex // held during a statement about the lease
	conn *pgx.Conn  // of its own, so that a large commit delays no renewal
}

const (
	sqlOwner = `SELECT epoch, name, (extract(epoch FROM until - clock_timestamp()) * 1000)::bigint, until::text FROM owner`
	sqlTake  = `UPDATE owner SET epoch = epoch + 1, name = $1, commits = 0, until = clock_timestamp() + $2 * interval '1 millisecond'
	WHERE epoch = $3 AND until < clock_timestamp() RETURNING epoch`
	sqlRenew   = `UPDATE owner SET until = clock_timestamp() + $2 * interval '1 millisecond' WHERE epoch = $1`
	sqlRelease = `UPDATE owner SET until = to_timestamp(0) WHERE epoch = $1`

	// sqlAnnounce is executed when the tables are up to date: those of an older version
	// have no address. Until then the row has that of the owner before. That server
	// refuses what is meant for another owner.
	sqlAnnounce = `UPDATE owner SET address = $2 WHERE epoch = $1`

	// sqlFence is the last statement of each commit. It divides by zero, and so ends the
	// transaction, if another server has taken over. Until the commit it holds the row, so
	// that a server which takes over waits and then reads all of this commit.
	sqlFence = `WITH own AS (UPDATE owner SET commits = $2 WHERE epoch = $1 RETURNING 1) SELECT 1 / count(*) FROM own`

	// sqlNextEpoch is for a new connection of the writer: what may be left of the old
	// one cannot commit any more. It waits for a commit in progress.
	sqlNextEpoch = `UPDATE owner SET epoch = epoch + 1, until = clock_timestamp() + $2 * interval '1 millisecond'
	WHERE epoch = $1 RETURNING epoch, commits`

	// sqlEndBackends ends connections of a server whose lease has run out. It may be
	// stopped in the middle of a commit, and hold locks.
	sqlEndBackends = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	WHERE application_name = $1 AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()`
)

func newLease(t *target, o *Options) *lease {
	return &lease{target: t, name: cmp.Or(o.Name, NewName()), ttl: o.Lease, begun: time.Now()}
}

// NewName returns a name for an owner. The random number makes it unique: it also names the
// connection of the writer.
func NewName() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%.16s %d %08x", stored(host), os.Getpid(), rand.Uint32())
}

// role returns the role of the connection of the writer of an owner. PostgreSQL cuts
// names of applications after 63 bytes.
func role(owner string) string { return "writer " + owner }

// holds reports whether no other server can have taken over yet.
func (l *lease) holds() bool { return int64(time.Since(l.begun)) < l.until.Load() }

// failing reports whether a renewal has failed just now: then requests need not try, too.
func (l *lease) failing() bool {
	at := l.failed.Load()
	return at > 0 && int64(time.Since(l.begun))-at < int64(l.ttl/2)
}

// granted notes a lease that was asked for at a time.
func (l *lease) granted(asked time.Time) { l.until.Store(int64(asked.Sub(l.begun) + l.ttl)) }

// takeEvery is the longest time between two looks at a lease that another server has. An
// owner that stops gives its lease back, and requests wait for the next owner.
const takeEvery = 200 * time.Millisecond

// take takes the lease. If another server holds it, take waits until it has run out,
// but returns an error when that server renews it, unless patient.
func (l *lease) take(ctx context.Context, patient bool, waiting func(owner string)) error {
	var first string // end of the lease when take began
	for {
		var epoch, left int64
		var owner, until string
		if err := l.connect(ctx); err != nil {
			return err
		}
		if err := l.conn.QueryRow(ctx, sqlOwner).Scan(&epoch, &owner, &left, &until); err != nil {
			return l.target.unusable(err)
		}
		switch {
		case left < 0:
			done, err := l.seize(ctx, epoch, owner)
			if done || err != nil {
				return err
			}
			continue // another server was quicker
		case first == "":
			first = until
			waiting(owner)
		case until != first && !patient:
			return l.held(owner)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Duration(left+1)*time.Millisecond, l.ttl/4, takeEvery)):
		}
	}
}

func (l *lease) held(owner string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "another server writes to %s: %s", l.target.where(), owner).
		WithHint("stop that server, or start this one with --standby to let it take over when the other one ends")
}

// seize takes a lease that has run out. It reports false if another server did.
func (l *lease) seize(ctx context.Context, epoch int64, owner string) (bool, error) {
	asked := time.Now()
	err := l.conn.QueryRow(ctx, sqlTake, l.name, l.ttl.Milliseconds(), epoch).Scan(&epoch)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, l.target.unusable(err)
	}
	l.epoch.Store(epoch)
	l.granted(asked)
	if owner != "" {
		_, _ = l.conn.Exec(ctx, sqlEndBackends, "tapedeck "+role(owner)) // without this right, its locks end with its connection
	}
	return true, nil
}

// announce writes where other servers reach this one.
func (l *lease) announce(ctx context.Context, address string) error {
	if _, err := l.conn.Exec(ctx, sqlAnnounce, l.epoch.Load(), address); err != nil {
		return l.target.unusable(err)
	}
	return nil
}

func (l *lease) connect(ctx context.Context) (err error) {
	if l.conn == nil || l.conn.IsClosed() {
		l.conn, err = l.target.connect(ctx, "lease")
	}
	return err
}

// errTaken means that another server has taken over.
var errTaken = errors.New("another server has taken over")

// renew renews the lease.
func (l *lease) renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skip {
		return nil
	}
	return l.renewLocked(ctx)
}

// confirm renews a lease that has run out, unless another goroutine has just done so.
func (l *lease) confirm(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds() || l.failing() || l.skip {
		return nil
	}
	return l.renewLocked(ctx)
}

func (l *lease) renewLocked(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl/2, time.Second))
	defer cancel()
	if err := l.connect(ctx); err != nil {
		l.failed.Store(int64(time.Since(l.begun)))
		return err
	}
	asked := time.Now()
	tag, err := l.conn.Exec(ctx, sqlRenew, l.epoch.Load(), l.ttl.Milliseconds())
	switch {
	case err != nil:
		l.failed.Store(int64(time.Since(l.begun)))
		return &dbError{err}
	case tag.RowsAffected() == 0:
		return errTaken
	}
	l.granted(asked)
	return nil
}

// next begins the next epoch on a new connection of the writer, and returns the number
// of the newest commit.
func (l *lease) next(ctx context.Context, c *pgx.Conn) (commits int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = c.Exec(ctx, sqlEndBackends, "tapedeck "+role(l.name)) // what may be left of the old connection
	asked := time.Now()
	var epoch int64
	err = c.QueryRow(ctx, sqlNextEpoch, l.epoch.Load(), l.ttl.Milliseconds()).Scan(&epoch, &commits)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, errTaken
	case err != nil:
		return 0, &dbError{err}
	}
	l.epoch.Store(epoch)
	l.granted(asked)
	return commits, nil
}

// release ends the lease, so that another server need not wait.
func (l *lease) release(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch.Load() > 0 && l.connect(ctx) == nil {
		_, _ = l.conn.Exec(ctx, sqlRelease, l.epoch.Load()) // otherwise it runs out
	}
	if l.conn != nil {
		_ = l.conn.Close(ctx)
	}
}

// keepLease renews the lease until ctx is done.
func (s *Store) keepLease(ctx context.Context) {
	tick := time.NewTicker(s.options.Lease / 4)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.lease.renew(ctx)
		switch {
		case ctx.Err() != nil || s.lost.Load() != nil:
			return
		case errors.Is(err, errTaken):
			s.lose()
			return
		case err != nil && !failing:
			s.options.Logger.Error("the lease of the database cannot be renewed; trying again", "error", err)
		case err == nil && failing:
			s.options.Logger.Info("the lease of the database is renewed again")
		}
		failing = err != nil
	}
}

// lose notes that another server has taken over. This one stores nothing any more.
func (s *Store) lose() {
	var err error = tapedeck.Errorf(tapedeck.Unavailable, "another server has taken over %s, because this one did not renew its lease in time", s.target.where()).
		WithHint("this server stores nothing any more; start it again with --standby, or use the other one")
	if s.lost.CompareAndSwap(nil, &err) {
		s.options.Logger.Error("the database is lost; nothing is stored any more", "error", err)
		if s.options.OnLost != nil {
			go s.options.OnLost(err)
		}
	}
}
