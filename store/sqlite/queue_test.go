package sqlite

import (
	"testing"
	"testing/synctest"
	"time"
)

// gathers runs gather after a group of n, together with f, and returns how long it
// waited. Only the wait moves the clock.
func gathers(t *testing.T, q *queue, n int, f func()) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		done := make(chan struct{})
		go func() {
			q.gather(n)
			took = time.Since(begin)
			close(done)
		}()
		synctest.Wait()
		f()
		<-done
	})
	return took
}

func TestGather(t *testing.T) {
	push := func(q *queue, n, size int) {
		for range n {
			q.push(&request{size: size})
		}
	}
	for name, c := range map[string]struct {
		group, waiting int
		then           func(q *queue)
		want           time.Duration
	}{
		"half of the last group comes":      {group: 20, then: func(q *queue) { push(q, 10, 1) }},
		"fewer come":                        {group: 20, then: func(q *queue) { push(q, 9, 1) }, want: patience},
		"nobody comes":                      {group: 20, then: func(*queue) {}, want: patience},
		"enough are there":                  {group: 20, waiting: 20, then: func(*queue) {}},
		"waiting callers count":             {group: 20, waiting: 10, then: func(q *queue) { push(q, 4, 1) }, want: patience},
		"the last group was one of few":     {group: fewRequests - 1, then: func(*queue) {}},
		"a big one comes":                   {group: 20, then: func(q *queue) { push(q, 1, bigSize) }},
		"the store is closed":               {group: 20, then: func(q *queue) { q.close() }},
		"there is nobody, and it is closed": {group: 0, then: func(q *queue) { q.close() }},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			push(q, c.waiting, 1)
			if took := gathers(t, q, c.group, func() { c.then(q) }); took != c.want {
				t.Errorf("it waited %v, want %v", took, c.want)
			}
			push(q, 100, 1) // before gather waits
		})
	}
}
