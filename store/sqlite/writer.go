package sqlite

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/group"
	"github.com/tapedeck/tapedeck/store"
)

// A writer changes the database. It takes the requests of all callers, decides
// them one after the other in memory, commits them in one transaction, and answers
// the callers. The goroutine that holds writing does this: that of run, or a caller.
type writer struct {
	store *Store
	queue *group.Queue[task]

	crowd atomic.Int32 // while above 0, callers leave the writing to run; see count

	writing sync.Mutex // guards the fields below, except those with a lock of their own

	conn  *conn // nil after a failure, because its state is unknown then
	cache *cache
	ended chan struct{}

	mu sync.Mutex // held while the requests of a group are processed, see [writer.submit]

	// The current group:
	now     int64
	begun   bool     // a transaction is open
	marked  []*state // the sessions that it changes, in this order
	expired []int64  // the sessions that it found expired, by gen
	purges  []int64  // the sessions whose events are removed later, by gen
	dying   [][]byte // the ids of their keys
	placed  []*trail // the trails that it saves
	since   int64    // the newest position before the group
	due     int64    // see [deadlines]

	commits []tapedeck.Commit // for the observers
	checked tapedeck.Session  // the copy that [tapedeck.Append.Check] sees
	costs   costs

	gen      int64 // the newest gen in use
	pos      int64
	purge    purge
	failing  atomic.Bool                 // the newest commit failed
	behind   bool                        // see [writer.markInUse]
	logged   int64                       // bytes written since the size of the log was checked
	unlooked struct{ groups, bytes int } // written since the last look at the log, see [writer.checkpoint]
	maxLog   int64

	maxFresh int // see [maxFresh]
}

// run writes the requests that their callers do not write, until the queue is
// closed and empty.
func (w *writer) run() {
	defer close(w.ended)
	w.writing.Lock()
	defer w.writing.Unlock()
	for {
		group, more := w.queue.Next()
		switch {
		case len(group) > 0:
			w.handle(group)
			w.purge.after(w)
			w.tendLog(group)
			w.queue.Gather(len(group)) // with the lock held, so that no caller writes alone meanwhile
		case !more:
			return
		case !w.purge.step(w):
			w.writing.Unlock()
			<-w.queue.Wake
			w.writing.Lock()
		default:
			w.checkpoint(0)
		}
	}
}

// writeAlone writes a group on the goroutine of a caller. It reports false, and writes
// nothing, if another goroutine is writing, or if several callers waited lately.
func (w *writer) writeAlone() bool {
	if w.crowd.Load() > 0 || !w.writing.TryLock() {
		return false
	}
	defer crashOnPanic()
	group, _ := w.queue.Next()
	if len(group) > 0 { // otherwise run has taken it
		w.handle(group)
		w.tendLog(group)
	}
	rest := w.queue.Len() > 0 || w.purge.pending()
	w.writing.Unlock()
	if rest {
		w.queue.Signal()
	}
	return true
}

// crashOnPanic ends the program, as a panic in the goroutine of run does. Without
// it, code above the caller could recover, and the store would continue with half
// a group.
func crashOnPanic() {
	if p := recover(); p != nil {
		stack := debug.Stack()
		go panic(fmt.Sprintf("%v\n\n%s", p, stack))
		select {}
	}
}

// handle writes a group and answers the callers. If one request spoils the group,
// each request is written on its own, so that the others do not suffer.
func (w *writer) handle(group []*request) {
	err := w.measured(group)
	switch {
	case err == nil:
	case len(group) == 1 || environmental(err) || errors.Is(err, errCommit) || w.store.lost.Load() != nil:
		for _, r := range group {
			r.Err = w.store.refusal(err)
		}
	default:
		for _, r := range group {
			w.handle([]*request{r})
		}
		return
	}
	w.count(len(group))
	for _, r := range group {
		close(r.Done)
	}
}

// crowdGroups is how many groups of one request must follow a group of several requests
// before callers write on their own goroutines again.
const crowdGroups = 16

func (w *writer) count(requests int) {
	if requests > 1 {
		w.crowd.Store(crowdGroups)
	} else if n := w.crowd.Load(); n > 0 {
		w.crowd.Store(n - 1)
	}
}

// errCommit marks a failure of the commit itself. errUncertain says in addition
// that the commit may still take effect after a crash.
var (
	errCommit    = errors.New("commit")
	errUncertain = errors.New("the failed commit could not be removed from the write-ahead log")
)

// undo makes sure that a failed commit does not take effect after a crash. If the
// failure came before the COMMIT there is nothing to do, because SQLite ignores
// the uncommitted end of the write-ahead log.
func (w *writer) undo(err error) error {
	if !errors.Is(err, errCommit) {
		return err
	}
	if cutErr := w.cutLog(); cutErr != nil {
		return fmt.Errorf("%w: %w: %w", err, errUncertain, cutErr)
	}
	return err
}

// write processes all requests of a group in one transaction. An error means that
// it wrote nothing.
func (w *writer) write(group []*request) error {
	err := w.connect()
	if err == nil {
		err = w.do(group)
	}
	if err == nil && w.begun {
		if err = w.commit(); err != nil {
			err = fmt.Errorf("%w: %w", errCommit, err)
		}
	}
	if err == nil && w.begun {
		if lost := w.store.checkPlaceBy((*place).checkLog); lost != nil {
			err = fmt.Errorf("%w: %w", errUncertain, lost)
		}
	}
	if err != nil {
		w.abort()
		err = w.undo(err)
	}
	w.log(err)
	if err != nil {
		return err
	}
	w.publish()
	w.eraseKeys()
	return nil
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
	w.since = w.pos
	w.due = w.store.deadlines.due.Load()
	for _, r := range group {
		if r.Left {
			continue
		}
		var broken *dbError
		if r.Err = r.Task.do(w); errors.As(r.Err, &broken) {
			return r.Err
		}
	}
	if err := w.flush(); err != nil || w.store.keys == nil {
		return err
	}
	return w.store.keys.Sync() // before the commit that needs the new keys
}

// connect opens the connection again after a failure.
func (w *writer) connect() error {
	if w.conn != nil {
		return nil
	}
	if err := w.store.checkPlace(); err != nil {
		return err // otherwise it would open the files of another folder
	}
	c, err := dial(dataSource(w.store.file, "rw", writerPragmas))
	if err == nil {
		w.conn = c
	}
	return err
}

// begin starts the group's transaction on its first call. A group in which
// everything is refused has no transaction, and costs no fsync.
func (w *writer) begin() error {
	if w.begun {
		return nil
	}
	if err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	w.begun = true
	if w.behind {
		return w.markInUse()
	}
	return nil
}

func (w *writer) commit() error {
	defer w.timed(time.Now())
	commit := func() error { return w.conn.exec("COMMIT") }
	if seam := w.store.options.Commit; seam != nil {
		return seam(commit)
	}
	return commit()
}

// abort drops everything that the group was about to do. It closes the connection,
// which rolls back; the next group opens another one.
func (w *writer) abort() {
	for _, st := range w.marked {
		w.cache.drop(st)
		w.store.index.CompareAndDelete(st.ID, st)
	}
	for _, gen := range w.expired {
		w.store.deadlines.forget(gen)
	}
	for _, t := range w.placed {
		t.leaving = false
	}
	w.reset()
	if w.store.keys != nil {
		w.store.keys.Discard()
	}
	if w.conn != nil {
		_ = w.conn.close()
		w.conn = nil
	}
}

func (w *writer) reset() {
	clear(w.marked)
	clear(w.placed)
	w.marked, w.expired, w.purges, w.placed, w.begun = w.marked[:0], w.expired[:0], w.purges[:0], w.placed[:0], false
	w.dying = nil
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
	s.trails.drop(w.placed) // before the same sessions get new trails
	for _, st := range w.marked {
		s.trails.add(st.Gen, st.Head-int64(len(st.pos)), st.pos, w.since)
		st.pos = st.pos[:0]
		if st.notify {
			w.commits = append(w.commits, tapedeck.Commit{Session: st.Session, Records: st.records, Gone: st.gone || st.removed, Erased: st.erased})
		}
		w.show(st)
	}
	if w.begun {
		w.behind = false
		s.deadlines.due.Store(w.due)
		w.purge.keys = append(w.purge.keys, w.dying...)
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

// flush writes the rows of the sessions that the group changed.
func (w *writer) flush() error {
	for _, st := range w.marked {
		if st.removed {
			continue
		}
		if st.Head != st.written.Head || !st.Updated.Equal(st.written.Updated) {
			if err := w.conn.exec(sqlHead, st.Head, st.Updated.UnixMilli(), int64(st.link), st.argument()); err != nil {
				return err
			}
		}
		if !sameEntry(&st.view, &st.written) || st.streamSeq != st.writtenSeq {
			if err := w.writeEntry(st); err != nil {
				return err
			}
		}
		if !store.SameTotals(&st.Totals, &st.written.Totals) {
			if err := w.writeTotals(st); err != nil {
				return err
			}
		}
		st.written, st.writtenSeq = st.view, st.streamSeq
	}
	if !w.begun {
		return nil
	}
	return w.placeOldest()
}

const (
	sqlHead  = `UPDATE heads SET head = ?, updated = ?, link = ? WHERE session = ?`
	sqlEntry = `UPDATE sessions SET title = ?, owner = ?, agent = ?, labels = ?, status = ?, runs = ?, open_runs = ?,
	resumable = ?, last_jump = ?, copy = ?, inputs = ?, waiting = ?, closed = ?, closed_by = ?, stream_seq = ?,
	active = ?, activity = ?, title_key = ?, budget = ?, spent = ?, sealed = ? WHERE gen = ?`
	sqlTotals = `UPDATE sessions SET totals_at = ?, tokens = ?, cost = ?, duration = ?, failures = ?, totals = ?, sealed_totals = ? WHERE gen = ?`
)

func (w *writer) writeEntry(st *state) error {
	plain, sealed, err := st.split()
	if err != nil {
		return err
	}
	labels, err1 := object(plain.Labels, plain.Labels == nil)
	runs, err2 := object(st.Runs, st.Runs == nil)
	closedBy, err3 := object(st.ClosedBy, st.ClosedBy == nil)
	inputs, err4 := object(plain.Inputs, plain.Inputs == nil)
	waiting, err5 := object(plain.Waiting, plain.Waiting == nil)
	budget, err6 := object(st.Budget, st.Budget == nil)
	spent, err7 := object(st.Spent, st.Spent == nil)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return err
	}
	return w.conn.exec(sqlEntry, plain.Title, st.Owner, st.Agent, labels, string(st.Status), runs, int64(len(st.Runs)),
		optionalFlag(st.Resumable), st.LastJump, flag(st.Copy), inputs, waiting, flag(st.Closed), closedBy, []byte(st.streamSeq),
		milliseconds(st.Active), store.PlaceOf(&st.Session, store.SortActivity).Number, st.titleKey(), budget, spent, sealed, st.Gen)
}
