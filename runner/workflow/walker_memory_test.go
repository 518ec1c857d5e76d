//go:build !race

// The race detector makes every stack larger, so its build has no test of memory.

package workflow

import (
	"context"
	"runtime"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// maxWalker is how many bytes a walker that waits may need, with its goroutine.
const maxWalker = 14 << 10

// TestWalkersThatWait measures walkers without an engine.
func TestWalkersThatWait(t *testing.T) {
	const n = 1000
	xml := diagramOf(startEnd+`<userTask id="U"/><endEvent id="E2"/>`+timer("boundaryEvent", `id="B" attachedToRef="U"`, "P1D"), "S>U", "U>E", "B>E2")
	runner := New(Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin := func(h *host) {
		h.runner = runner
		if err := h.begin(ctx, ""); err != nil {
			t.Fatal(err)
		}
	}
	warm := newHost(t, xml)
	begin(warm)
	waiting, ended := make(chan bool), make(chan bool)
	walk := func(in tapedeck.Invocation) {
		for ev := range runner.Run(ctx, in) {
			if ev.Type == tapedeck.PermissionRequested {
				waiting <- true
			}
		}
		ended <- true
	}
	hosts := make([]*host, n)
	for i := range hosts {
		hosts[i] = newHost(t, xml)
		begin(hosts[i])
	}
	before := memory()
	for _, h := range hosts {
		in := h.invocation("")
		in.Config, in.Delegates = nil, nil // the engine drops them, too
		go walk(in)
	}
	for range hosts {
		<-waiting
	}
	each := (memory() - before) / n
	t.Logf("each needs %d bytes", each)
	if each > maxWalker {
		t.Errorf("each walker that waits needs %d bytes", each)
	}
	cancel()
	for range hosts {
		<-ended
	}
}

func memory() int64 {
	for range 6 { // each halves a stack that has grown
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
