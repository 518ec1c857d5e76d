package wallclock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck/internal/wallclock"
)

func TestUntil(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct{ ahead, want time.Duration }{
		{-time.Hour, 0}, {0, 0}, {time.Second, time.Second}, {time.Hour, wallclock.Look},
	} {
		if got := wallclock.Until(now.Add(c.ahead), now); got != c.want {
			t.Errorf("%v ahead: %v, want %v", c.ahead, got, c.want)
		}
	}
	began := time.Now()
	set := began.Round(0).Add(time.Hour) // what the clock shows after it was set forward
	if got := wallclock.Until(began.Add(30*time.Minute), set); got != 0 {
		t.Errorf("the clock was set beyond the moment, and %v are left", got)
	}
}

func TestAfterFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), make(chan time.Duration, 2)
		call := func() { calls <- time.Since(began) }
		wallclock.AfterFunc(began.Add(150*time.Second), call)
		stop := wallclock.AfterFunc(began.Add(100*time.Second), call)
		<-time.After(90 * time.Second)
		stop()
		if at := <-calls; at != 150*time.Second {
			t.Errorf("the call came after %v", at)
		}
		wallclock.AfterFunc(began, call)
		if at := <-calls; at != 150*time.Second {
			t.Errorf("a moment that has passed: the call came after %v", at)
		}
		stop() // again, and after the end
		<-time.After(time.Hour)
		if len(calls) > 0 {
			t.Error("a call came after stop, or twice")
		}
	})
}
