package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
)

// usages returns the usage in the terminal events of a session, by thread.
func (w *world) usages(session string) map[string]string {
	w.Helper()
	found := map[string]string{}
	for _, ev := range w.events(session) {
		var d struct{ Usage json.RawMessage }
		if ev.Type == tapedeck.RunFinished || ev.Type == tapedeck.RunError {
			w.must(json.Unmarshal(ev.Data, &d))
			found[ev.ThreadName()] = string(d.Usage)
		}
	}
	return found
}

// A terminal event has the sums of the usage that its run reported, by model,
// however the run ends, and without the usage of sub-agents.
func TestTerminalEventsHaveUsage(t *testing.T) {
	report := func(say func(string, string) bool) {
		say("usage.reported", `{"model":"big","provider":"p","inputTokens":10,"outputTokens":1,"cachedInputTokens":4,"costUsd":1}`)
		say("usage.reported", `{"model":"small","totalTokens":3}`)
		say("usage.reported", `{"model":"big","provider":"p","inputTokens":5,"reasoningTokens":9007199254740991}`)
		say("usage.reported", `{"model":"big","provider":"p","reasoningTokens":9007199254740991,"inputTokens":0}`)
		say("usage.reported", `{"costUsd":2}`)
	}
	const want = `[{"provider":"p","model":"big","inputTokens":15,"outputTokens":1,"reasoningTokens":9007199254740991,"cachedInputTokens":4},{"model":"small","totalTokens":3}]`
	for name, end := range map[string]func(context.Context) error{
		"complete":  func(context.Context) error { return nil },
		"failed":    func(context.Context) error { return errors.New("out of order") },
		"cancelled": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
				report(say)
				return end(ctx)
			}, func(w *world) {
				w.create("s")
				w.start("s")
				synctest.Wait()
				if name == "cancelled" {
					_, err := w.Cancel(w.Context(), "s", "")
					w.must(err)
				}
				if got := w.usages("s")["main"]; got != want {
					t.Errorf("the end has %s, want %s", got, want)
				}
			})
		})
	}
}

func TestSubagentsHaveUsageOfTheirOwn(t *testing.T) {
	inBubble(t, lead, func(w *world) {
		w.create("s")
		w.turn("s", "bot", "")
		count := map[string]int{}
		for _, usage := range w.usages("s") {
			count[usage]++
		}
		for _, want := range []string{`[{"inputTokens":100,"outputTokens":2}]`, `[{"inputTokens":10,"outputTokens":1}]`} {
			if count[want] != 1 {
				t.Errorf("%d runs have %s, of %v", count[want], want, count)
			}
		}
	})
}
