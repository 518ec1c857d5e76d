package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A run can end the process that continues it. Without a limit it would end every process
// that starts after that. So while runs are continued, their sessions are on trial: a record
// in the store names them. If the process dies then, the next one finds the record. If the
// record names one session, the runs of that session fail. If it names several, they are
// continued in small groups, one group after the other. So a run fails only if the process
// died while no other session was on trial.
const (
	trialRecord = tapedeck.ViewPrefix + "recovery"
	trialTime   = time.Minute            // a session is on trial for this long at most
	trialGroups = 30                     // suspects are continued in at most this many groups
	trialWrites = 500 * time.Millisecond // the record keeps a name for this long after the end of its trial, while others are on trial
)

// codeCrashLoop is the code of the RUN_ERROR of a run that is not continued.
const codeCrashLoop = "crash_loop"

// crashLoopEnd ends a run that is not continued.
var crashLoopEnd = errorEnd(codeCrashLoop, "the server died twice in a row while it executed this run, so the run is not continued. Resume it to try once more", tapedeck.StatusFailed)

// A trial has the sessions that are on trial. Its methods may be called by several
// goroutines.
type trial struct {
	engine *Engine

	writing sync.Mutex // held while the record is written, so that an older list never replaces a newer one
	stored  bool       // the record is this engine's
	read    bool       // the record of the process before was read
	before  []string   // the sessions in it

	turning atomic.Bool // runs are continued one after the other

	mu       sync.Mutex
	sessions map[string]*onTrial
	batches  int           // how many have begun
	changed  chan struct{} // has an element when the record has names that are not on trial
	keeping  bool          // keep is running
}

// An onTrial is a session on trial.
type onTrial struct {
	busy  int // runs that work, and one while the session is looked at
	batch *batch
}

// A batch is what was put on trial together.
type batch struct {
	number int // of its beginning
	left   int
	done   chan struct{} // closed when none of its sessions is on trial any more
}

func newTrial(e *Engine) *trial {
	return &trial{engine: e, sessions: map[string]*onTrial{}, changed: make(chan struct{}, 1)}
}

// begin puts sessions on trial, durably. The caller calls settle for each, once it has
// continued its runs.
func (t *trial) begin(ctx context.Context, sessions []string) (*batch, error) {
	b := &batch{done: make(chan struct{})}
	t.mu.Lock()
	t.batches++
	b.number = t.batches
	for _, id := range sessions {
		if on := t.sessions[id]; on != nil { // an earlier attempt failed
			on.busy++
			continue
		}
		t.sessions[id] = &onTrial{busy: 1, batch: b}
		b.left++
	}
	if b.left == 0 {
		close(b.done)
	}
	if !t.keeping {
		t.keeping = true
		go t.keep()
	}
	t.mu.Unlock()
	time.AfterFunc(trialTime, func() { t.expire(sessions, b) })
	if err := t.write(ctx); err != nil {
		for _, id := range sessions {
			t.settle(id)
		}
		return nil, err
	}
	return b, nil
}

// watch keeps the session of a run on trial until the run waits for others or ends, and
// returns the function that says so. It is nil if the session is not on trial.
func (t *trial) watch(session string) (settled func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	on := t.sessions[session]
	if on == nil {
		return nil
	}
	on.busy++
	return sync.OnceFunc(func() { t.settle(session) })
}

// settle notes that a run of a session has stopped to work, or that the session was looked at.
func (t *trial) settle(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if on := t.sessions[session]; on != nil {
		if on.busy--; on.busy <= 0 {
			t.remove(session, on)
		}
	}
}

// expire ends the trial of a batch.
func (t *trial) expire(sessions []string, b *batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range sessions {
		if on := t.sessions[id]; on != nil && on.batch == b {
			t.remove(id, on)
		}
	}
}

// remove takes a session from those on trial. The caller holds mu.
func (t *trial) remove(session string, on *onTrial) {
	delete(t.sessions, session)
	if on.batch.left--; on.batch.left == 0 {
		close(on.batch.done)
	}
	t.change()
}

// keep removes the names of sessions from the record when their trial has ended. It returns
// when no session is on trial. It waits a little while others are on trial, because most
// trials end soon, and the runs of a session that is alone in the record fail if the process
// dies.
func (t *trial) keep() {
	for {
		if !t.awaitChange() {
			return
		}
		err := t.write(t.engine.life)
		t.mu.Lock()
		if err == nil && len(t.sessions) == 0 {
			t.keeping = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		if err != nil {
			t.engine.options.Logger.Warn("the record of runs that are continued could not be written; trying again", "error", err)
			t.change()
			if !t.engine.sleep(lastRetry) {
				return
			}
		}
	}
}

// awaitChange waits until nobody is on trial, or trialWrites after a change. It reports false
// if the engine is shut down before.
func (t *trial) awaitChange() bool {
	var due <-chan time.Time
	for {
		select {
		case <-t.changed:
			t.mu.Lock()
			none := len(t.sessions) == 0
			t.mu.Unlock()
			if none {
				return true
			}
			if due == nil {
				due = time.After(trialWrites)
			}
		case <-due:
			return true
		case <-t.engine.life.Done():
			return false
		}
	}
}

func (t *trial) change() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// end deletes the record: the process ends, and has not died.
func (t *trial) end(ctx context.Context) {
	t.mu.Lock()
	clear(t.sessions)
	t.mu.Unlock()
	t.writing.Lock()
	stored := t.stored
	t.writing.Unlock()
	if !stored {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := t.write(ctx); err != nil {
		t.engine.options.Logger.Warn("the record of runs that were continued could not be deleted; the next start may end one of them", "error", err)
	}
}

// write stores the names of the sessions on trial. If there is none, it deletes the record.
func (t *trial) write(ctx context.Context) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	names := t.names()
	store := t.engine.store
	if len(names) == 0 {
		err := store.Delete(ctx, trialRecord)
		if absent(err) {
			err = nil
		}
		t.stored = t.stored && err != nil
		return err
	}
	t.stored = true // also after an error, because it may have been written
	chunks := [][]byte{[]byte(t.engine.id + "\n" + strings.Join(names, "\n"))}
	_, err := store.Append(ctx, tapedeck.Append{Session: trialRecord, Chunks: chunks})
	if absent(err) {
		_, err = store.Create(ctx, tapedeck.Spec{ID: trialRecord, Kind: tapedeck.KindView, ContentType: "text/plain", Chunks: chunks})
	}
	return err
}

// names returns the ids of the sessions on trial, the latest first. If this process dies, the
// next one continues them in this order.
func (t *trial) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Keys(t.sessions), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.sessions[b].batch.number, t.sessions[a].batch.number), cmp.Compare(a, b))
	})
}

// suspects returns the sessions that were on trial when the process before this one died.
func (t *trial) suspects(ctx context.Context) ([]string, error) {
	if t.read {
		return t.before, nil
	}
	p, err := t.engine.store.Read(ctx, trialRecord, tapedeck.Range{From: -1, Reverse: true, Limit: 1})
	if err != nil && !absent(err) {
		return nil, err
	}
	t.read = true
	if len(p.Records) > 0 {
		lines := strings.Split(string(p.Records[0].Data), "\n")
		if lines[0] != t.engine.id {
			t.before = lines[1:]
		}
	}
	return t.before, nil
}

// await waits until a batch is not on trial any more, at most for a time. It reports false
// if the engine is shut down before.
func (t *trial) await(b *batch, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-b.done:
	case <-timer.C:
	case <-t.engine.life.Done():
		return false
	}
	return true
}
