package quota

import "time"

// burst is for how many seconds a subject that was silent may send at once.
const burst = 10

// A bucket has what may be sent. It can be in debt. The zero value is full.
//
// Package rate has no bucket that can be in debt, and so no request above its burst.
type bucket struct {
	spent float64 // what lacks until it is full
	at    time.Time
}

// refill adds what has come since the last call.
func (b *bucket) refill(now time.Time, limit int64) {
	if passed := now.Sub(b.at).Seconds(); passed > 0 && !b.at.IsZero() {
		b.spent = max(0, b.spent-passed*float64(limit))
	}
	b.at = now
}

// wait returns how long it takes until something may be sent, 0 if now. A limit of 0 is none.
func (b *bucket) wait(now time.Time, limit int64) time.Duration {
	if limit == 0 {
		*b = bucket{}
		return 0
	}
	b.refill(now, limit)
	if over := b.spent - float64(limit)*burst; over >= 0 {
		return max(time.Duration(over/float64(limit)*float64(time.Second)), time.Millisecond)
	}
	return 0
}

// take takes from the bucket after wait has returned 0.
func (b *bucket) take(n int64) {
	if !b.at.IsZero() {
		b.spent += float64(n)
	}
}

// isFull reports whether nothing lacks.
func (b *bucket) isFull(now time.Time, limit int64) bool {
	b.refill(now, limit)
	return b.spent == 0 || limit == 0
}
