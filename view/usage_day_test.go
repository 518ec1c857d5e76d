package view_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// usageLog has events of a session. Each is "TIME INVOCATION ACTOR TYPE DATA".
func usageLog(t *testing.T, lines ...string) []tapedeck.Event {
	t.Helper()
	var out []tapedeck.Event
	for i, line := range lines {
		p := strings.SplitN(line, " ", 5)
		at, err := time.Parse(time.RFC3339, p[0])
		if err != nil || len(p) != 5 {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, tapedeck.Event{Offset: int64(i), Time: at, Invocation: p[1], Actor: strings.TrimPrefix(p[2], "-"), Type: p[3], Channel: tapedeck.ChannelOf(p[3]), Data: json.RawMessage(p[4])})
	}
	return out
}

// shortUsage writes days as text: what is not 0.
func shortUsage(days []view.DayUsage) string {
	var b strings.Builder
	for _, d := range days {
		fmt.Fprintf(&b, "%s %s/%s", d.Day, d.Agent, d.Model)
		for _, f := range []struct {
			name string
			n    int64
		}{{"runs", d.Runs}, {"failed", d.RunsFailed}, {"calls", d.ToolCalls}, {"calls_failed", d.ToolsFailed}, {"tokens", d.Total}} {
			if f.n != 0 {
				fmt.Fprintf(&b, " %s=%d", f.name, f.n)
			}
		}
		if d.CostUSD != nil {
			fmt.Fprintf(&b, " usd=%v", *d.CostUSD)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestUsageByDay(t *testing.T) {
	const begin = `RUN_STARTED {"threadId":"main","runId":"r","metadata":{"tapedeck":{"agent":"coder"}}}`
	for name, test := range map[string]struct {
		log  []string
		want string
	}{
		"a run counts for the day on which it ends, in UTC": {[]string{
			"2026-01-05T23:00:00Z i - " + begin,
			`2026-01-05T23:00:01Z i - TOOL_CALL_START {"toolCallId":"a","toolCallName":"Bash"}`,
			`2026-01-05T23:00:02Z i - TOOL_CALL_RESULT {"toolCallId":"a","messageId":"m","content":"no","error":"no"}`,
			`2026-01-06T00:30:00+01:00 i - usage.reported {"model":"m","inputTokens":2,"outputTokens":1,"costUsd":0.1}`,
			`2026-01-06T01:30:00+01:00 i - RUN_FINISHED {"threadId":"main","runId":"r"}`,
		}, "2026-01-06 coder/m runs=1 calls=1 calls_failed=1 tokens=3 usd=0.1\n"},
		"of several models, the one with the most tokens has the run": {[]string{
			"2026-01-05T12:00:00Z i - " + begin,
			`2026-01-05T12:00:01Z i - RUN_ERROR {"message":"no","usage":[{"model":"small","totalTokens":5},{"model":"large","totalTokens":50}]}`,
		}, "2026-01-05 coder/large runs=1 failed=1 tokens=50\n2026-01-05 coder/small tokens=5\n"},
		"an open run does not count yet": {[]string{
			"2026-01-05T12:00:00Z i - " + begin,
			`2026-01-05T12:00:01Z i - usage.reported {"model":"m","inputTokens":2}`,
		}, ""},
		"a cancelled run has not failed": {[]string{
			"2026-01-05T12:00:00Z i - " + begin,
			`2026-01-05T12:00:01Z i - RUN_FINISHED {"threadId":"main","runId":"r","outcome":{"type":"cancelled"}}`,
		}, "2026-01-05 coder/ runs=1\n"},
		"a run that starts again was interrupted": {[]string{
			"2026-01-05T12:00:00Z i - " + begin,
			"2026-01-05T13:00:00Z i - " + begin,
			`2026-01-05T13:00:01Z i - RUN_FINISHED {"threadId":"main","runId":"r"}`,
		}, "2026-01-05 coder/ runs=2 failed=1\n"},
		"without a run, the one who acts is the agent": {[]string{
			`2026-01-05T12:00:00Z - agent:bot usage.reported {"model":"m","inputTokens":4}`,
			`2026-01-05T12:00:01Z - user:ada usage.reported {"model":"m","inputTokens":1}`,
		}, "2026-01-05 /m tokens=1\n2026-01-05 bot/m tokens=4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := shortUsage(summarize(0, usageLog(t, test.log...)).Summary().Days)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A fork counts only its own runs: those of its parent count there.
func TestUsageOfAForkIsItsOwn(t *testing.T) {
	log := usageLog(t,
		`2026-01-05T12:00:00Z i - usage.reported {"model":"m","inputTokens":4}`,
		`2026-01-05T12:00:01Z i - usage.reported {"model":"m","inputTokens":1}`)
	if got := shortUsage(summarize(1, log).Summary().Days); got != "2026-01-05 /m tokens=1\n" {
		t.Errorf("got %s", got)
	}
}

// The days add up to the totals, and are the same after a checkpoint.
func TestUsageByDayAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawRaw(t)
		for _, id := range []string{"i1", "i2", "i3", ""} { // end all runs
			last := tapedeck.Event{Offset: int64(len(events)), Type: tapedeck.RunFinished, Channel: tapedeck.ChannelAgentState, Invocation: id, Time: time.UnixMilli(1_800_000_000_000), Data: json.RawMessage(`{"threadId":"t","runId":"i"}`)}
			events = append(events, last)
		}
		f := view.NewSummaryFold(0)
		for i := range events {
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				f = checkpoint(t, *f)
			}
			f.Apply(&events[i])
		}
		s := f.Summary()
		var all view.Used
		for i := range s.Days {
			all.Add(&s.Days[i].Used)
		}
		all.Round()
		if diff := cmp.Diff(s.Tokens, all.Tokens); diff != "" {
			t.Errorf("tokens (-summary +days)\n%s", diff)
		}
		if diff := cmp.Diff(s.CostUSD, all.CostUSD); diff != "" {
			t.Errorf("cost (-summary +days)\n%s", diff)
		}
		calls, failed := int64(0), int64(0)
		for _, tool := range s.Tools {
			calls, failed = calls+tool.Count, failed+tool.Failed
		}
		if all.ToolCalls != calls || all.ToolsFailed != failed {
			t.Errorf("%d calls and %d failed, the summary has %d and %d", all.ToolCalls, all.ToolsFailed, calls, failed)
		}
		if got, want := mustJSON(t, s.Days), mustJSON(t, summarize(0, events).Summary().Days); got != want {
			t.Error(cmp.Diff(want, got))
		}
	})
}

// However many agents and days a log names, the state is bounded and no token is lost.
func TestUsageByDayIsBounded(t *testing.T) {
	f := view.NewSummaryFold(0)
	const n = 3000
	for i := range n {
		e := tapedeck.Event{Offset: int64(i), Type: tapedeck.UsageReported, Actor: fmt.Sprintf("agent:a%d", i), Time: time.Unix(int64(i)*86_400, 0), Data: json.RawMessage(`{"inputTokens":1}`)}
		f.Apply(&e)
	}
	days, sum := f.Summary().Days, int64(0)
	for i := range days {
		sum += days[i].Total
	}
	if len(days) > 1000 || sum != n {
		t.Errorf("%d lines with %d tokens", len(days), sum)
	}
}

func TestHasDays(t *testing.T) {
	text := view.SessionSummary{LastMessage: &view.LastMessage{Text: `"days":[`}}
	for _, test := range []struct {
		row  any
		want bool
	}{{view.ListRow{SessionSummary: text, Days: []view.DayUsage{}}, true}, {text, false}, {view.SessionSummary{}, false}} {
		if got := view.HasDays([]byte(mustJSON(t, test.row))); got != test.want {
			t.Errorf("%s: %v", mustJSON(t, test.row), got)
		}
	}
}
