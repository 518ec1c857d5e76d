package hub_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/store/memory"
)

func open(t *testing.T) *hub.Hub {
	t.Helper()
	h := hub.New(memory.New(memory.Options{}))
	create(t, h)
	return h
}

func create(t *testing.T, h *hub.Hub) {
	t.Helper()
	if done, err := h.Create(t.Context(), tapedeck.Spec{ID: "s", Kind: tapedeck.KindSession}); err != nil || !done.New {
		t.Fatalf("create: %+v, %v", done, err)
	}
}

func add(t *testing.T, h *hub.Hub, n int) {
	t.Helper()
	for range n {
		if _, err := h.Append(context.Background(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: "test"}}}); err != nil {
			t.Error(err)
		}
	}
}

// collect follows from an offset until it has n records, and checks that they
// are dense.
func collect(ctx context.Context, h *hub.Hub, from int64, n int) error {
	want := from
	for p, err := range h.Follow(ctx, "s", tapedeck.FollowOptions{From: from, Limit: 7}) {
		if err != nil {
			return err
		}
		for _, r := range p.Records {
			if r.Offset != want {
				return fmt.Errorf("got offset %d, want %d", r.Offset, want)
			}
			want++
		}
		if want >= from+int64(n) {
			return nil
		}
	}
	return fmt.Errorf("the end came at %d", want)
}

// TestFollow tests the promise of the package: history, then live, every event once
// and in order, for every follower. If a follower subscribes after the read instead
// of before, the test fails with a deadlock.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		add(t, h, 20)
		var wg sync.WaitGroup
		for from := range int64(20) {
			wg.Go(func() {
				if err := collect(t.Context(), h, from, 220-int(from)); err != nil {
					t.Errorf("from %d: %v", from, err)
				}
			})
		}
		for range 4 {
			wg.Go(func() { add(t, h, 50) })
		}
		wg.Wait()
		if n := h.Followers(); n != 0 {
			t.Errorf("%d followers are left behind", n)
		}
	})
}

// An appendingStore appends right after a read that has reached the head, which is
// the worst moment for a follower.
type appendingStore struct {
	tapedeck.Store
	append func()
}

func (s *appendingStore) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	p, err := s.Store.Read(ctx, session, r)
	if err == nil && p.CaughtUp() && s.append != nil {
		f := s.append
		s.append = nil
		f()
	}
	return p, err
}

// TestNoWakeUpIsLost: an append between a follower's read and its wait wakes the
// follower. If a follower subscribes after the read, the test fails with a deadlock.
func TestNoWakeUpIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &appendingStore{Store: memory.New(memory.Options{})}
		h := hub.New(store)
		create(t, h)
		store.append = func() { add(t, h, 1) }
		if err := collect(t.Context(), h, 0, 1); err != nil {
			t.Error(err)
		}
	})
}

// A lateStore is slow: when it appends, all followers are waiting again.
type lateStore struct{ tapedeck.Store }

func (s *lateStore) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	synctest.Wait()
	return s.Store.Append(ctx, a)
}

// TestFollowersWakeAfterTheAppend: a follower that is woken before the append would
// find no event and wait forever. If the hub wakes followers before the append, the
// test fails with a deadlock.
func TestFollowersWakeAfterTheAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(&lateStore{memory.New(memory.Options{})})
		create(t, h)
		got := make(chan error)
		go func() { got <- collect(t.Context(), h, 0, 1) }()
		synctest.Wait()
		add(t, h, 1)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

func TestFollowReportsThatItHasCaughtUp(t *testing.T) {
	for _, events := range []int{0, 1, 7, 8, 30} {
		t.Run(fmt.Sprint(events), func(t *testing.T) {
			h := open(t)
			add(t, h, events)
			pages, seen := 0, 0
			for p, err := range h.Follow(t.Context(), "s", tapedeck.FollowOptions{Limit: 7}) {
				if err != nil {
					t.Fatal(err)
				}
				pages++
				seen += len(p.Records)
				if p.CaughtUp() {
					break // the reader must not wait for this until the next event
				}
			}
			if seen != events || pages != max(1, (events+6)/7) {
				t.Errorf("%d events in %d pages", seen, pages)
			}
		})
	}
}

func TestFollowEndsWithAClosedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		add(t, h, 3)
		done := make(chan int)
		go func() {
			n := 0
			for p, err := range h.Follow(t.Context(), "s", tapedeck.FollowOptions{}) {
				if err != nil {
					t.Error(err)
				}
				n += len(p.Records)
			}
			done <- n
		}()
		synctest.Wait() // it has caught up
		if _, err := h.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: "last"}}, Close: true}); err != nil {
			t.Fatal(err)
		}
		if n := <-done; n != 4 {
			t.Errorf("saw %d events, want 4", n)
		}
		pages := 0
		for p, err := range h.Follow(t.Context(), "s", tapedeck.FollowOptions{From: 4}) { // nothing is left
			if pages++; err != nil || !p.Closed || len(p.Records) != 0 {
				t.Errorf("got %v, %v", p, err)
			}
		}
		if pages != 1 {
			t.Errorf("%d pages from the end of a closed session, want 1", pages)
		}
	})
}

func TestFollowSeesACloseWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range h.Follow(t.Context(), "s", tapedeck.FollowOptions{}) {
			}
		}()
		synctest.Wait()
		if _, err := h.Append(t.Context(), tapedeck.Append{Session: "s", Close: true}); err != nil {
			t.Fatal(err)
		}
		<-ended
	})
}

func TestIdleFollowerGetsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		start, pages := time.Now(), 0
		for p, err := range h.Follow(t.Context(), "s", tapedeck.FollowOptions{Idle: 15 * time.Second}) {
			if err != nil || len(p.Records) != 0 || !p.CaughtUp() {
				t.Fatalf("got %v, %v", p, err)
			}
			if pages++; pages == 4 {
				break
			}
		}
		if took := time.Since(start); took != 45*time.Second {
			t.Errorf("three idle pages after %v", took)
		}
	})
}

// TestFollowerIsWoken: a follower that is woken by FollowOptions.Wake gets an empty
// page, and misses no events.
func TestFollowerIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		wake := make(chan struct{})
		pages := make(chan int)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			defer close(pages)
			for p, err := range h.Follow(ctx, "s", tapedeck.FollowOptions{Wake: wake}) {
				if err != nil {
					return
				}
				pages <- len(p.Records)
			}
		}()
		if n := <-pages; n != 0 {
			t.Fatalf("first a page of %d", n)
		}
		wake <- struct{}{}
		if n := <-pages; n != 0 {
			t.Errorf("woken, a page of %d", n)
		}
		if _, err := h.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if n := <-pages; n != 1 {
			t.Errorf("then a page of %d", n)
		}
		stop()
		<-pages
	})
}

func TestFollowErrors(t *testing.T) {
	follow := func(ctx context.Context, h *hub.Hub, from int64) error {
		for _, err := range h.Follow(ctx, "s", tapedeck.FollowOptions{From: from}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	t.Run("no such session", func(t *testing.T) {
		h := hub.New(memory.New(memory.Options{}))
		if err := follow(t.Context(), h, 0); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("got %v", err)
		}
	})
	t.Run("beyond the head", func(t *testing.T) {
		h := open(t)
		if err := follow(t.Context(), h, 5); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the reader disconnects", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error)
			go func() { got <- follow(ctx, h, 0) }()
			synctest.Wait()
			cancel()
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	})
	for _, recreated := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted, recreated %v", recreated), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := open(t)
				add(t, h, 2)
				got := make(chan error)
				go func() { got <- follow(t.Context(), h, 0) }()
				synctest.Wait()
				if err := h.Delete(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				if recreated {
					create(t, h)
					add(t, h, 5) // its events 2, 3 and 4 are not those that the follower waits for
				}
				if err := <-got; tapedeck.KindOf(err) != tapedeck.NotFound {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestASlowFollowerSlowsNobody: a follower that reads no pages for a while neither
// blocks the writer nor misses an event.
func TestASlowFollowerSlowsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		resume, done := make(chan struct{}), make(chan error)
		go func() {
			first, want := true, int64(0)
			for p, err := range h.Follow(t.Context(), "s", tapedeck.FollowOptions{Limit: 100}) {
				if err != nil {
					done <- err
					return
				}
				if first {
					first = false
					<-resume
				}
				for _, r := range p.Records {
					if r.Offset != want {
						done <- fmt.Errorf("got %d, want %d", r.Offset, want)
						return
					}
					want++
				}
				if want == 5000 {
					break
				}
			}
			done <- nil
		}()
		synctest.Wait()
		add(t, h, 5000) // if it waited for the follower, synctest would report a deadlock
		close(resume)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkIdleFollowers reports the memory that a waiting follower takes.
func BenchmarkIdleFollowers(b *testing.B) {
	h := hub.New(memory.New(memory.Options{}))
	if _, err := h.Create(b.Context(), tapedeck.Spec{ID: "s", Kind: tapedeck.KindSession}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range b.N {
		ready := make(chan struct{})
		wg.Go(func() {
			for range h.Follow(ctx, "s", tapedeck.FollowOptions{}) {
				if ready != nil {
					close(ready)
					ready = nil
				}
			}
		})
		<-ready
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.StackInuse+after.HeapInuse-before.StackInuse-before.HeapInuse)/float64(b.N), "B/follower")
	cancel()
	wg.Wait()
}

// TestDrain: Drain waits for the followers that have not yielded everything, and for no
// others.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		add(t, h, 3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		held, seen := make(chan struct{}), make(chan int64, 2)
		follow := func(hold <-chan struct{}) {
			for p, err := range h.Follow(ctx, "s", tapedeck.FollowOptions{}) {
				if err != nil {
					return
				}
				if hold != nil {
					<-hold
				}
				if p.CaughtUp() {
					seen <- p.Next
				}
			}
		}
		go follow(nil)
		go follow(held)
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { drained <- h.Drain(ctx) }()
		synctest.Wait()
		select {
		case err := <-drained:
			t.Fatalf("Drain returns while a follower is behind: %v", err)
		default:
		}
		close(held)
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
		if a, b := <-seen, <-seen; a != 3 || b != 3 {
			t.Error("a follower has not yielded everything")
		}
		add(t, h, 1) // followers continue after Drain
		if a, b := <-seen, <-seen; a != 4 || b != 4 {
			t.Error("a follower has ended")
		}
		if err := h.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestDrainGivesUp: Drain ends with its context.
func TestDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		add(t, h, 1)
		held := make(chan struct{})
		go func() {
			for range h.Follow(t.Context(), "s", tapedeck.FollowOptions{}) {
				<-held
				return
			}
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(held)
	})
}

// TestBehind: a follower counts as behind until it waits for more.
func TestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		took, release := make(chan struct{}), make(chan struct{})
		go func() {
			for p := range h.Follow(ctx, "s", tapedeck.FollowOptions{}) {
				if len(p.Records) > 0 {
					close(took)
					<-release
				}
			}
		}()
		synctest.Wait()
		if n, behind := h.Followers(), h.Behind(); n != 1 || behind != 0 {
			t.Errorf("a follower that waits: %d, %d behind", n, behind)
		}
		add(t, h, 1)
		<-took
		if behind := h.Behind(); behind != 1 {
			t.Errorf("a follower that has a page: %d behind", behind)
		}
		close(release)
		synctest.Wait()
		if behind := h.Behind(); behind != 0 {
			t.Errorf("after it: %d behind", behind)
		}
		cancel()
		synctest.Wait()
		if n, behind := h.Followers(), h.Behind(); n != 0 || behind != 0 {
			t.Errorf("without followers: %d, %d behind", n, behind)
		}
		if got := h.Waiting(); got != 0 {
			t.Errorf("%d followers that have ended still wait", got)
		}
	})
}
