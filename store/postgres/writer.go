package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/group"
)

// A writer changes the database. Its goroutine takes the requests of all callers,
// decides them one after the other in memory, sends what they change in one transaction,
// and answers the callers.
type writer struct {
	store *Store
	queue *group.Queue[task]

	conn      *pgx.Conn // nil after a failure, because its state is unknown then
	connected bool      // there was a connection before

	cache *cache
	ended chan struct{}

	mu sync.Mutex // held while the requests of a group are processed, see [writer.submit]

	// The current group:
	now     int64
	batch   batch           // what is not sent
	begun   bool            // it changes something
	open    bool            // a part of it was sent, and the transaction is open
	marked  []*state        // the sessions that it changes, in this order
	deleted map[string]bool // the ids whose rows it deletes
	absent  map[string]bool // the ids that it looked for and that do not exist
	expired []int64         // the sessions that it found expired, by gen
	purges  []int64         // the sessions whose events are removed later, by gen
	due     int64           // see [deadlines]

	commits []tapedeck.Commit // for the observers
	checked tapedeck.Session  // the copy that [tapedeck.Append.Check] sees
	costs   costs

	gen, storedGen int64 // the newest gen in use, and the one in the table facts
	number         int64 // of the newest commit of this epoch
	unsure         bool  // whether the commit of the marked sessions took effect is not known yet
	took           bool  // the newest commit of which that was not known took effect
	purge          purge
	failing        atomic.Bool // the newest commit failed
}

func newWriter(s *Store) *writer {
	return &writer{store: s, queue: group.New[task](), cache: newCache(s.options.HotSessions), ended: make(chan struct{}), deleted: map[string]bool{}, absent: map[string]bool{}}
}

// run writes until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.ended)
	for {
		group, more := w.queue.Next()
		switch {
		case len(group) > 0:
			w.handle(group)
			w.purge.after(w)
			w.queue.Gather(len(group))
		case !more:
			return
		case !w.purge.step(w):
			<-w.queue.Wake
		}
	}
}

// handle writes a group and answers the callers. If one request spoils the group,
// each request is written on its own, so that the others do not suffer.
func (w *writer) handle(group []*request) {
	err := w.measured(group)
	switch {
	case err == nil:
	case len(group) == 1 || environmental(err) || errors.Is(err, errSeam) || w.store.lost.Load() != nil:
		for _, r := range group {
			r.Err = w.store.refusal(err)
		}
	default:
		for _, r := range group {
			w.handle([]*request{r})
		}
		return
	}
	for _, r := range group {
		close(r.Done)
	}
}

// errSeam marks a failure of the commit that a test has made. errUncertain says that the
// commit may have taken effect. errHungUp is for a group that goes on after its
// connection broke.
var (
	errSeam      = errors.New("commit")
	errUncertain = errors.New("the connection broke during the commit")
	errBroken    = errors.New("the connection broke, and nothing was written")
	errHungUp    = errors.New("the connection is closed")
)

// write processes all requests of a group in one transaction. An error means that
// it wrote nothing, unless it is errUncertain. PostgreSQL closes connections when it
// restarts, so what fails for a broken connection is tried again on another one.
func (w *writer) write(group []*request) error {
	err := w.try(group)
	if errors.Is(err, errBroken) {
		err = w.try(group)
	}
	w.log(err)
	return err
}

func (w *writer) try(group []*request) error {
	if err := w.connect(); err != nil {
		return err
	}
	err := w.do(group)
	if err == nil && w.begun {
		err = w.commit()
		if errors.Is(err, errUncertain) {
			err = w.learn(err)
		}
	}
	switch {
	case w.unsure: // the sessions stay marked until it is known
		return err
	case err == nil:
		w.publish()
		return nil
	}
	w.abort()
	switch {
	case code(err) == codeDivision || code(err) == codeUnique:
		return w.explain(err)
	case w.conn != nil && w.conn.IsClosed():
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return err
}

// explain returns why a condition of the commit was not met, or a row was there already:
// another server has taken over, or another program has changed the tables.
func (w *writer) explain(err error) error {
	var epoch int64
	askErr := w.ask(func(r pgx.Rows) error { return r.Scan(&epoch) }, `SELECT epoch FROM owner`)
	if askErr == nil && epoch != w.store.lease.epoch.Load() {
		w.store.lose()
		return *w.store.lost.Load()
	}
	w.forget() // what is in memory may be wrong
	return err
}

// forget drops the states of all sessions, so that they are read again.
func (w *writer) forget() {
	for id, st := range w.cache.states {
		w.cache.drop(st)
		w.store.index.CompareAndDelete(id, st)
	}
}

// log logs when commits begin to fail and when they succeed again, and not the
// failures in between, which may be thousands.
func (w *writer) log(err error) {
	switch {
	case err != nil && !w.failing.Load():
		w.store.options.Logger.Error("commits fail; nothing is stored until they succeed again", "error", err)
	case err == nil && w.failing.Load() && w.begun:
		w.store.options.Logger.Info("commits succeed again")
	default:
		return
	}
	w.failing.Store(err != nil)
}

func (w *writer) do(group []*request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.store.now()
	w.due = w.store.deadlines.due.Load()
	if err := w.prefetch(group); err != nil {
		return err
	}
	for _, r := range group {
		if r.Left {
			continue
		}
		var broken *dbError
		if r.Err = r.Task.do(w); errors.As(r.Err, &broken) {
			return r.Err
		}
	}
	return w.flush()
}

// exec adds a statement to the transaction. It is sent with the others.
func (w *writer) exec(statement string, args ...any) {
	w.begun = true
	w.batch.add(statement, args...)
}

// query sends what the group has changed until now, so that the statement sees it, and
// calls row with each row of the answer.
func (w *writer) query(row func(pgx.Rows) error, statement string, args ...any) error {
	if err := w.send(); err != nil {
		return err
	}
	return w.ask(row, statement, args...)
}

// ask is like query, but does not see what the group has changed.
func (w *writer) ask(row func(pgx.Rows) error, statement string, args ...any) error {
	if w.conn == nil || w.conn.IsClosed() {
		return &dbError{errHungUp}
	}
	ctx, cancel := w.store.limited(context.Background())
	defer cancel()
	return queryRows(ctx, w.conn, row, statement, args...)
}

// number of a query that sees what the group has changed.
func (w *writer) integer(statement string, args ...any) (n int64, err error) {
	err = w.query(func(r pgx.Rows) error { return r.Scan(&n) }, statement, args...)
	return n, err
}

// send sends a part of the transaction, which stays open.
func (w *writer) send() error {
	if w.batch.empty() {
		return nil
	}
	var b pgx.Batch
	if !w.open {
		b.Queue("BEGIN")
	}
	w.batch.queueTo(&b)
	w.open = true
	return w.sendBatch(&b)
}

func (w *writer) sendBatch(b *pgx.Batch) error {
	if w.conn == nil || w.conn.IsClosed() {
		return &dbError{errHungUp}
	}
	// The database limits each statement; this is for a connection that is cut.
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(b.Len())*w.store.options.StatementTimeout+connectTimeout)
	defer cancel()
	defer w.store.target.watch(cancel)()
	if err := w.conn.SendBatch(ctx, b).Close(); err != nil {
		return &dbError{err}
	}
	return nil
}

// commit sends the rest of the transaction. Its last statement checks, in the
// transaction, that this server still owns the database, see [lease].
func (w *writer) commit() error {
	defer w.timed(time.Now())
	commit := func() error {
		var b pgx.Batch
		w.batch.queueTo(&b)
		w.number++
		b.Queue(sqlFence, w.store.lease.epoch.Load(), w.number)
		if w.open { // without BEGIN, what is sent together is one transaction
			b.Queue("COMMIT")
		}
		err := w.sendBatch(&b)
		if err != nil && !isAnswer(err) {
			return fmt.Errorf("%w: %w", errUncertain, err)
		}
		return err
	}
	if seam := w.store.options.Commit; seam != nil {
		err := seam(commit)
		var broken *dbError
		if err != nil && !errors.As(err, &broken) {
			return fmt.Errorf("%w: %w", errSeam, err)
		}
		return err
	}
	return commit()
}

// learn finds out whether a commit took effect whose answer was lost.
func (w *writer) learn(err error) error {
	w.unsure = true
	if connectErr := w.connect(); connectErr != nil {
		return fmt.Errorf("%w (and %w)", err, connectErr)
	}
	if w.took { // connect has published it
		return nil
	}
	return fmt.Errorf("%w: %w", errBroken, errHungUp)
}

// abort drops everything that the group was about to do.
func (w *writer) abort() {
	for _, st := range w.marked {
		w.cache.drop(st)
		w.store.index.CompareAndDelete(st.ID, st)
	}
	for _, gen := range w.expired {
		w.store.deadlines.forget(gen)
	}
	w.gen = w.storedGen
	if w.conn != nil && w.open && !w.conn.IsClosed() {
		ctx, cancel := w.store.limited(context.Background())
		defer cancel()
		if _, err := w.conn.Exec(ctx, "ROLLBACK"); err != nil {
			w.hangUp()
		}
	}
	w.reset()
}

// hangUp closes the connection. The next group opens another one.
func (w *writer) hangUp() {
	if w.conn != nil {
		ctx, cancel := w.store.limited(context.Background())
		defer cancel()
		_ = w.conn.Close(ctx)
		w.conn = nil
	}
}

func (w *writer) reset() {
	clear(w.marked)
	clear(w.deleted)
	w.batch.reset()
	w.marked, w.expired, w.purges = w.marked[:0], w.expired[:0], w.purges[:0]
	w.begun, w.open, w.unsure = false, false, false
}

// mark notes that the group changes st.
func (w *writer) mark(st *state) {
	if !st.dirty {
		st.dirty = true
		w.marked = append(w.marked, st)
	}
}

// publish makes a committed group visible to readers, and notifies the observers.
func (w *writer) publish() {
	s := w.store
	for _, st := range w.marked {
		if st.notify {
			w.commits = append(w.commits, tapedeck.Commit{Session: st.Session, Records: st.records, Gone: st.gone || st.removed, Erased: st.erased})
		}
		w.show(st)
	}
	if w.begun {
		w.storedGen = w.gen
		s.deadlines.due.Store(w.due)
		w.purge.gens, w.purge.failed = append(w.purge.gens, w.purges...), false
	}
	w.reset()
	if len(w.commits) > 0 {
		s.observers.Committed(w.commits)
		clear(w.commits)
		w.commits = w.commits[:0]
	}
	for st := w.cache.oldest(); st != nil; st = w.cache.oldest() {
		w.cache.drop(st)
		s.index.CompareAndDelete(st.ID, st)
	}
}

// show publishes the view of a session.
func (w *writer) show(st *state) {
	s := w.store
	if st.removed {
		s.index.CompareAndDelete(st.ID, st)
		s.deadlines.forget(st.Gen)
		return
	}
	v := st.view
	st.published.Store(&v)
	if !st.listed {
		st.listed = true
		s.index.Store(st.ID, st)
	}
	if st.renewed {
		s.deadlines.touch(&v, w.now)
	}
	st.records, st.dirty, st.notify, st.renewed, st.erased = nil, false, false, false, false
}
