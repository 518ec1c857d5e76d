package workflow

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestProcesses: one runner runs the processes of a file beside each other, and each
// continues in another server as the process that it is.
func TestProcesses(t *testing.T) {
	data, err := os.ReadFile("testdata/pools.bpmn")
	if err != nil {
		t.Fatal(err)
	}
	runner := New(Options{})
	for process, want := range map[string]string{"Kitchen": "+Bake", "Customer": "+Ask"} {
		inBubble(t, func(t *testing.T) {
			h := newHost(t, string(data), "loaves", 2)
			h.runner, h.config.Process, h.cutAt = runner, process, 4
			if _, err := h.run(); !errors.Is(err, errCut) {
				t.Fatal(err)
			}
			h.runner, h.cutAt = New(Options{}), 0
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			if err := h.walk(ctx, ""); err != nil {
				t.Fatal(err)
			}
			if w := h.state(); w.Process != process || w.Outcome != "completed" || !strings.Contains(h.trace(), want) {
				t.Errorf("%s: ran %s, trace %s", process, w.Process, h.trace())
			}
		})
	}
	h := newHost(t, string(data), "loaves", 2)
	if _, err := h.run(); err == nil || !strings.Contains(err.Error(), "2 processes that could run") {
		t.Errorf("without a process: %v", err)
	}
	h.config.Process = "Garden"
	if _, err := h.run(); err == nil || !strings.Contains(err.Error(), `no process "Garden"`) {
		t.Errorf("with another process: %v", err)
	}
}
