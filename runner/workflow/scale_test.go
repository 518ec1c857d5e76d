package workflow

import (
	"context"
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// longLog returns a host whose log has a process that entered an element n times and
// then waits.
func longLog(t testing.TB, n int) *host {
	h := newHost(t, diagramOf(startEnd+gateway("exclusive", "M")+script("A", "n = n + 1")+gateway("exclusive", "G", `default="G_U"`)+`<userTask id="U"/>`,
		"S>M", "M>A", "A>G", fmt.Sprint("G>M:n < ", n/3), "G>U", "U>E"), "n", 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := h.begin(ctx, ""); err != nil {
		t.Fatal(err)
	}
	for ev, err := range h.runner.Run(ctx, h.invocation("")) {
		if err != nil {
			t.Fatal(err)
		}
		ev.Invocation = h.open
		h.append(ev)
		if ev.Type == tapedeck.PermissionRequested {
			break
		}
	}
	return h
}

// TestResumeOfALongProcess: a process that entered 10,000 elements continues where it
// was, and asks its question no second time.
func TestResumeOfALongProcess(t *testing.T) {
	h := longLog(t, 10_000)
	n, entered := len(h.log), 0
	for _, ev := range h.log {
		if ev.Type == tapedeck.WorkflowEntered {
			entered++
		}
	}
	if entered < 9_990 {
		t.Fatalf("%d elements were entered", entered)
	}
	d, _ := payload.DecodeAs[payload.PermissionRequested](h.log[n-1])
	ended := make(chan error)
	go func() { ended <- h.walk(context.Background(), "") }()
	h.send(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: d.ID, Option: "submit"}})
	if err := <-ended; err != nil || len(h.log) != n+5 {
		t.Errorf("%v, %d events more, want 5", err, len(h.log)-n)
	}
}

func BenchmarkResume10000(b *testing.B) {
	h := longLog(b, 10_000)
	in := h.invocation("")
	for b.Loop() {
		w := newWalker(h.runner, b.Context(), &in, func(tapedeck.Event, error) bool { return true })
		if err := w.restore(); err != nil {
			b.Fatal(err)
		}
	}
}
