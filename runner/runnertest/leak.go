package runnertest

import (
	"runtime"
	"testing"
	"time"
)

// noLeaks runs a test and waits until there are no more goroutines than before. It only
// compares numbers, because there is no better check outside a bubble. So tests that use
// it must not run in parallel.
func noLeaks(t *testing.T, run func(*testing.T)) {
	before := runtime.NumGoroutine()
	run(t)
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 64<<10)
			t.Fatalf("goroutines are leaked:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}
