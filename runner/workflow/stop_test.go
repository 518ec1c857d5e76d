package workflow

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// A looked is a context that is cancelled when it is looked at for the last time.
type looked struct {
	context.Context
	left   atomic.Int64
	cancel func()
}

func (l *looked) Err() error {
	if l.left.Add(-1) == 0 {
		l.cancel()
	}
	return l.Context.Err()
}

// endless are processes with expressions that take all their steps many times.
var endless = map[string]string{
	"a script":   diagramOf(startEnd+script("T", strings.Repeat("x = all(1..1000, all(1..900, true))\n", 1000)), "S>T", "T>E"),
	"a template": diagramOf(startEnd+agentTask("T", strings.Repeat("{{ all(1..1000, all(1..900, true)) }}", 1000), "out"), "S>T", "T>E"),
}

// TestStoppedExpression: a run that is stopped does not wait for its expressions, and what was
// stopped is no failure of its element.
func TestStoppedExpression(t *testing.T) {
	for name, xml := range endless {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHost(t, xml)
				if err := h.begin(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				inner, cancel := context.WithCancel(t.Context())
				ctx := &looked{Context: inner, cancel: cancel}
				ctx.left.Store(2000) // in the middle of the first evaluations
				for ev, err := range h.runner.Run(ctx, h.invocation("")) {
					if err != nil {
						if !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
						break
					}
					if ev.Type == tapedeck.WorkflowFailed {
						t.Errorf("%s %s", ev.Type, ev.Data)
					}
				}
				if looks := -ctx.left.Load(); looks < 0 || looks > 100 {
					t.Errorf("after the end it was looked at %d times", looks)
				}
			})
		})
	}
}
