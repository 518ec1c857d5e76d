package memory

import (
	"iter"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A log is one session with its records.
type log struct {
	tapedeck.Session
	// spans hold the records in order: first those shared with ancestors, and in
	// the last span those of the session itself. Only the last span grows, so
	// forks can share spans without a copy.
	spans     [][]tapedeck.Record
	producers map[string]store.ProducerState
	streamSeq string
	touched   time.Time

	parent *log
	forks  int  // number of its forks that exist
	gone   bool // it was deleted, and exists only for its forks
}

// deadline returns when l expires; zero for never.
func (l *log) deadline() time.Time {
	d := l.Expires
	if l.TTL > 0 {
		if t := l.touched.Add(l.TTL); d.IsZero() || t.Before(d) {
			d = t
		}
	}
	return d
}

// share returns spans of the first n records, and an empty span for the records of a
// fork.
func (l *log) share(n int64) [][]tapedeck.Record {
	var out [][]tapedeck.Record
	for _, span := range l.spans {
		if k := min(n, int64(len(span))); k > 0 {
			out = append(out, span[:k])
			n -= k
		}
	}
	return append(out, nil)
}

// add appends records to the session's own.
func (l *log) add(records []tapedeck.Record) {
	own := &l.spans[len(l.spans)-1]
	*own = append(*own, records...)
}

func (l *log) read(r tapedeck.Range) (tapedeck.Page, error) {
	p := tapedeck.Page{Head: l.Head, Closed: l.Closed, Gen: l.Gen}
	from := r.From
	if r.Reverse && from == -1 {
		from = l.Head
	}
	if from < 0 || from > l.Head {
		return p, tapedeck.Errorf(tapedeck.Invalid, "session %q has offsets from 0 to %d, not %d", l.ID, l.Head, from)
	}
	records := l.forward(from)
	if r.Reverse {
		records = l.backward(from)
	}
	size := 0
	for rec := range records {
		size += len(rec.Data)
		if len(p.Records) == r.Limit || size > r.MaxBytes && len(p.Records) > 0 {
			break
		}
		p.Records = append(p.Records, rec)
	}
	n := int64(len(p.Records))
	if r.Reverse {
		n = -n
	}
	p.Next = from + n
	return p, nil
}

// forward yields the records at offset from and above.
func (l *log) forward(from int64) iter.Seq[tapedeck.Record] {
	return func(yield func(tapedeck.Record) bool) {
		for _, span := range l.spans {
			n := min(from, int64(len(span)))
			for _, r := range span[n:] {
				if !yield(r) {
					return
				}
			}
			from -= n
		}
	}
}

// backward yields the records below offset from, newest first.
func (l *log) backward(from int64) iter.Seq[tapedeck.Record] {
	return func(yield func(tapedeck.Record) bool) {
		start := l.Head
		for _, span := range slices.Backward(l.spans) {
			start -= int64(len(span))
			n := max(0, min(from-start, int64(len(span))))
			for _, r := range slices.Backward(span[:n]) {
				if !yield(r) {
					return
				}
			}
		}
	}
}
