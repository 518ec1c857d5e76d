package group

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// gathers runs Gather after a group of n, together with f, and returns how long it
// waited. Only the wait moves the clock.
func gathers(t *testing.T, q *Queue[int], n int, f func()) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		done := make(chan struct{})
		go func() {
			q.Gather(n)
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
	push := func(q *Queue[int], n, size int) {
		for range n {
			q.Push(&Request[int]{Size: size})
		}
	}
	for name, c := range map[string]struct {
		group, waiting int
		then           func(q *Queue[int])
		want           time.Duration
	}{
		"half of the last group comes":      {group: 20, then: func(q *Queue[int]) { push(q, 10, 1) }},
		"fewer come":                        {group: 20, then: func(q *Queue[int]) { push(q, 9, 1) }, want: patience},
		"nobody comes":                      {group: 20, then: func(*Queue[int]) {}, want: patience},
		"enough are there":                  {group: 20, waiting: 20, then: func(*Queue[int]) {}},
		"waiting callers count":             {group: 20, waiting: 10, then: func(q *Queue[int]) { push(q, 4, 1) }, want: patience},
		"the last group was one of few":     {group: fewRequests - 1, then: func(*Queue[int]) {}},
		"a big one comes":                   {group: 20, then: func(q *Queue[int]) { push(q, 1, BigSize) }},
		"the store is closed":               {group: 20, then: func(q *Queue[int]) { q.Close() }},
		"there is nobody, and it is closed": {group: 0, then: func(q *Queue[int]) { q.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			q := New[int]()
			push(q, c.waiting, 1)
			if took := gathers(t, q, c.group, func() { c.then(q) }); took != c.want {
				t.Errorf("it waited %v, want %v", took, c.want)
			}
			push(q, 100, 1) // before Gather waits
		})
	}
}

func TestQueueTakesTurns(t *testing.T) {
	q := New[int]()
	push := func(sizes ...int) {
		for _, n := range sizes {
			q.Push(&Request[int]{Size: n})
		}
	}
	take := func() []int {
		group, _ := q.Next()
		var sizes []int
		for _, r := range group {
			sizes = append(sizes, r.Size)
		}
		return sizes
	}
	const big, half = BigSize, BigSize / 2
	push(1, big, 2, big+1, 3)
	var got [][]int
	got = append(got, take())
	push(4, half, half, 5)
	for range 6 {
		got = append(got, take())
	}
	want := [][]int{{1, 2, 3}, {big}, {4, half, half}, {big + 1}, {5}, nil, nil}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, more := q.Next(); !more {
		t.Error("the queue ended while it was open")
	}
	q.Close()
	open, _ := q.Push(&Request[int]{})
	if _, more := q.Next(); more || open {
		t.Error("the queue is not closed")
	}
}
