package viewtest_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view/viewtest"
)

// logs is the number that `make folds` compares.
var logs = flag.Uint64("logs", 2000, "number of logs in which TestLogsHaveEverything looks")

// TestLogsHaveEverything counts in the logs of [viewtest.Varied] what a fold
// must handle. Each must be there several times.
func TestLogsHaveEverything(t *testing.T) {
	const minimum = 20
	count := map[string]int{}
	n := *logs
	if testing.Short() {
		n = 800
	}
	for seed := range n {
		events := viewtest.Log(seed, viewtest.Varied(seed))
		last := int64(-1)
		for i := range events {
			e := &events[i]
			count[e.Type]++
			for what, has := range features(e, last) {
				if has {
					count[what]++
				}
			}
			if _, ok := e.Jump(); ok {
				last = e.Offset
			}
		}
	}
	want := append(payload.EventTypes(), "acme.unknown", "undo", "jump of all threads", "jump of one thread", "jump of several threads",
		"side thread", "sub-agent's thread", "sub-agent's item", "erased", "metadata of Tapedeck", "unusual member", "no members", "outside a run")
	for _, what := range want {
		if count[what] < minimum {
			t.Errorf("%d logs have %q %d times", n, what, count[what])
		}
	}
}

// features returns what an event is an example of. last is the offset of the
// newest jump before it.
func features(e *tapedeck.Event, last int64) map[string]bool {
	j, jump := e.Jump()
	ofSession := e.Channel == tapedeck.ChannelSession
	return map[string]bool{
		"undo":                    jump && j.To == last,
		"jump of all threads":     jump && j.Thread == "",
		"jump of one thread":      jump && j.Thread != "" && len(j.With) == 0,
		"jump of several threads": jump && len(j.With) > 0,
		"side thread":             strings.HasPrefix(e.Thread, "side"),
		"sub-agent's thread":      payload.IsSubThread(e.Thread),
		"sub-agent's item":        strings.Contains(string(e.Data), `"subagentRunId"`) && !strings.HasPrefix(e.Type, "SUBAGENT_"),
		"erased":                  e.Erased(),
		"metadata of Tapedeck":    strings.Contains(string(e.Data), `"metadata":{"tapedeck":`),
		"unusual member":          strings.Contains(string(e.Data), "__proto__") || strings.Contains(string(e.Data), `\ud800`),
		"no members":              string(e.Data) == "{}" || strings.HasPrefix(string(e.Data), `{"odd":`),
		"outside a run":           !ofSession && e.Invocation == "",
	}
}
