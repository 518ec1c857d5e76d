package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/payload"
)

// The processes of a dead engine's run are killed before its end is appended, and
// no other processes.
func TestLeftovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
			say("agent.started", `{"pid":4711,"started":"12","host":"h","mark":"m"}`)
			say("agent.started", `{"pid":4712,"started":"13","host":"h"}`)
			<-ctx.Done()
			return ctx.Err()
		})
		w.create("s")
		w.start("s")
		w.create("foreign")
		past := parse(`RUN_STARTED {"threadId":"t","runId":"r"}`, `agent.started {"pid":1,"started":"1","host":"h"}`)
		past[0].Invocation, past[1].Invocation = "r", "r"
		_, err := w.store.Append(t.Context(), tapedeck.Append{Session: "foreign", Events: past})
		w.must(err)
		w.create("closed")
		past = parse(`RUN_STARTED {"threadId":"t","runId":"r","metadata":{"tapedeck":{"owner":"eng_x"}}}`, `agent.started {"pid":2,"started":"1","host":"h"}`)
		past[0].Invocation, past[1].Invocation = "r", "r"
		_, err = w.store.Append(t.Context(), tapedeck.Append{Session: "closed", Events: past, Close: true})
		w.must(err)
		synctest.Wait()
		w.down.Store(true)
		_ = w.Shutdown(t.Context())
		w.down.Store(false)

		var killed []string
		second := w.open(silent, func(o *engine.Options) {
			o.KillLeftover = func(d payload.AgentStarted) (bool, error) {
				killed = append(killed, fmt.Sprint(d.PID, " ", d.Started, " ", d.Host, " ", d.Mark))
				if len(w.head("s").Runs) == 0 {
					t.Error("it was ended first")
				}
				return true, nil
			}
		})
		if n, err := second.Recover(t.Context()); n != 1 || err != nil {
			t.Fatalf("recovered %d, %v", n, err)
		}
		if want := []string{"4711 12 h m", "4712 13 h "}; !slices.Equal(killed, want) {
			t.Errorf("killed %q", killed)
		}
		if _, err := second.Recover(t.Context()); err != nil || len(killed) != 2 {
			t.Errorf("killed again: %q, %v", killed, err)
		}
	})
}

// Imported events can say anything, and must not make the engine kill a process.
func TestLeftoversOfAnImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent, func(o *engine.Options) {
			o.KillLeftover = func(d payload.AgentStarted) (bool, error) {
				t.Errorf("killed %d", d.PID)
				return true, nil
			}
		})
		const run = `{"offset":0,"type":"session.created","timestamp":"2026-01-05T12:00:00.000Z","data":{}}
{"offset":1,"type":"RUN_STARTED","timestamp":"2026-01-05T12:00:00.000Z","invocation":"i","data":{"threadId":"t","runId":"i","metadata":{"tapedeck":{"owner":"eng_x"}}}}
{"offset":2,"type":"agent.started","timestamp":"2026-01-05T12:00:00.000Z","invocation":"i","data":{"pid":4711,"started":"1","host":"h"}}
`
		for _, end := range []string{"", `{"offset":3,"type":"session.closed","timestamp":"2026-01-05T12:00:00.000Z","data":{}}` + "\n"} {
			if _, err := w.Import(t.Context(), api.ImportRequest{Format: "ndjson"}, strings.NewReader(run+end)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Recover(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
