package audit

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Options of a log.
type Options struct {
	Logger *slog.Logger // gets why the log cannot be written; nil for none

	// Flush, if not nil, replaces the ticker after which repeated refusals are written.
	// Tests use it.
	Flush <-chan time.Time
}

// A Log writes records. Its methods may be called by several goroutines, and several
// processes may have a log in the same folder.
type Log struct {
	options Options
	dir     string
	last    time.Time // of the newest record; the goroutine that writes has it
	failed  bool      // the newest record was not written

	mu     sync.RWMutex // held for writing by Close
	closed bool
	queue  chan *entry
	ended  chan struct{}

	refusals refusals
}

// An entry is a record that waits for the writer.
type entry struct {
	record api.AuditRecord
	done   chan error // nil if nobody waits
}

// maxBatch is how many records are written at once.
const maxBatch = 256

// flushEvery is how long refusals of the same kind are counted before they are written.
const flushEvery = time.Minute

// Open returns the log of the data folder dir. It creates nothing before the first record,
// so that a folder that can only be read can be opened.
func Open(dir string, o Options) *Log {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{options: o, dir: filepath.Join(dir, Folder), queue: make(chan *entry, maxBatch), ended: make(chan struct{})}
	go l.run()
	return l
}

// Add writes a record. When it returns without an error, the record is on the disk, unless
// it is a refusal. Otherwise the error is [tapedeck.Unavailable].
func (l *Log) Add(r api.AuditRecord) error {
	e := &entry{record: r, done: make(chan error, 1)}
	l.mu.RLock()
	if l.closed {
		l.mu.RUnlock()
		return unavailable(errors.New("the log is closed"))
	}
	l.queue <- e
	l.mu.RUnlock()
	if err := <-e.done; err != nil {
		return unavailable(err)
	}
	return nil
}

// unavailable returns the error of a record that could not be written.
func unavailable(err error) error {
	return tapedeck.Errorf(tapedeck.Unavailable, "the audit log cannot be written").
		WithHint("the server's log says why; nothing that has to be recorded is done until then").Because(err)
}

// Refuse notes a refusal. It waits for nothing: an answer takes the same time whether
// there is something to record or not. Refusals of the same kind are counted, and become
// one record a minute.
func (l *Log) Refuse(r api.AuditRecord) {
	r.Outcome = Refused
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed || !l.refusals.isNew(&r) {
		return
	}
	select {
	case l.queue <- &entry{record: r}:
	default: // the disk is slow
		l.refusals.again(&r)
	}
}

// Close writes what waits, and ends the log.
func (l *Log) Close() {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	if !was {
		close(l.queue)
	}
	l.mu.Unlock()
	<-l.ended
}

// run writes what is queued until the log is closed. Records that wait while the disk is
// busy are written together.
func (l *Log) run() {
	defer close(l.ended)
	flush := l.options.Flush
	if flush == nil {
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		flush = tick.C
	}
	for {
		select {
		case e, ok := <-l.queue:
			if !ok {
				l.write(l.refusals.take())
				return
			}
			l.write(l.gather(e))
		case <-flush:
			l.write(l.refusals.take())
		}
	}
}

// gather returns an entry and those that wait behind it.
func (l *Log) gather(first *entry) []*entry {
	batch := []*entry{first}
	for len(batch) < maxBatch {
		select {
		case e, ok := <-l.queue:
			if !ok { // run sees it next
				return batch
			}
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// write writes entries, each to its strand, and answers those who wait.
func (l *Log) write(batch []*entry) {
	for _, s := range strands {
		var mine []*entry
		for _, e := range batch {
			if strandOf(&e.record) == s {
				mine = append(mine, e)
			}
		}
		if len(mine) == 0 {
			continue
		}
		err := l.append(s, mine)
		if err != nil && !l.failed {
			l.options.Logger.Error("the audit log cannot be written", "folder", l.dir, "error", err)
		}
		l.failed = err != nil
		for _, e := range mine {
			if e.done != nil {
				e.done <- err
			}
		}
	}
}

// stamp gives a record a time after that of every record before it, so that a reader can
// continue after any of them.
func (l *Log) stamp(r *api.AuditRecord) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	if !now.After(l.last) {
		now = l.last.Add(time.Microsecond)
	}
	l.last, r.Time = now, now
}
