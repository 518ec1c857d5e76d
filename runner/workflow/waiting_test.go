package workflow_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tapedeck/tapedeck/store/sqlite"
)

// maxWaiting is how many bytes of memory a workflow may need that waits, with all that
// the engine and the store have for it. The log is in files.
const maxWaiting = 18 << 10

// TestWaitingIsCheap measures many workflows that wait for users.
func TestWaitingIsCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts 1,000 workflows")
	}
	const n = 1000
	files, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	s := newServerOn(t, files, nil)
	xml := xmlOf(`<userTask id="Ask"/><boundaryEvent id="B" attachedToRef="Ask"><timerEventDefinition><timeDuration>P1D</timeDuration></timerEventDefinition></boundaryEvent><endEvent id="E2"/>`, "S>Ask", "Ask>E", "B>E2")
	s.run("first", xml, nil)
	before := used()
	goroutines := runtime.NumGoroutine()
	for i := range n {
		s.run(fmt.Sprint("s", i), xml, nil)
	}
	for s.workflow(fmt.Sprint("s", n-1)).Elements == nil || len(s.workflow(fmt.Sprint("s", n-1)).Activations) < 2 {
		runtime.Gosched()
	}
	each := (used() - before) / n
	perRun := float64(runtime.NumGoroutine()-goroutines) / n
	t.Logf("each needs %d bytes and %.1f goroutines", each, perRun)
	if each > maxWaiting || perRun > 1.1 {
		t.Errorf("each workflow that waits needs %d bytes and %.1f goroutines", each, perRun)
	}
}

func used() int64 {
	var m runtime.MemStats
	for range 6 { // each shrinks a stack that has grown to a half
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
