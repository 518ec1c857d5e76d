package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

func TestSparkLine(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		want   string
	}{
		{[]int64{1}, "▃▃▃▃"},
		{[]int64{0, 100}, "  ▇▇"},
		{[]int64{1, 1000, 0, 500}, "▁▇ ▃"},
		{[]int64{1, 1, 5, 5, 0, 0, 9, 1}, "▁▇ ▇"},
		{[]int64{-5, 3, 0, 1 << 50}, " ▁ ▇"},
	} {
		if got := sparkLine(c.counts, 4); got != c.want {
			t.Errorf("%v: %q, want %q", c.counts, got, c.want)
		}
	}
}

func TestTree(t *testing.T) {
	s := func(id, parent string) api.SessionRow {
		return api.SessionRow{Session: tapedeck.Session{ID: id, Parent: parent}}
	}
	copied := s("copy", "a")
	copied.Copy = true
	order, depth := tree([]api.SessionRow{s("c", "b"), copied, s("lost", "elsewhere"), s("b", "a"), s("b2", "a"), s("a", "")})
	var got []string
	for i := range order {
		got = append(got, fmt.Sprint(depth[i], order[i].ID))
	}
	if want := []string{"0copy", "0lost", "0a", "1b", "2c", "1b2"}; !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestLengthOf(t *testing.T) {
	if got := lengthOf(nil); got != "-" {
		t.Errorf("without a summary: %q", got)
	}
	for ms, want := range map[int64]string{0: "-", 999: "999ms", 1000: "0:01", 59_999: "0:59", 3_599_999: "59:59", 3_600_000: "1:00:00", 360_061_000: "100:01:01"} {
		axis := view.AxisTime
		if ms < 1000 {
			axis = view.AxisEvents
		}
		if got := lengthOf(&view.SessionSummary{Axis: axis, RecordingMS: ms}); got != want {
			t.Errorf("%d ms: %q, want %q", ms, got, want)
		}
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"": {}, "90m": now.Add(-90 * time.Minute), "7d": now.AddDate(0, 0, -7), "0d": now,
		"2026-01-31":           time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"2026-01-31T12:00:00Z": time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
	} {
		if got, err := parseTime(in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"yesterday", "-3d", "-3h", "d", "2026-13-01", "1e9d"} {
		if got, err := parseTime(in, now); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}

func TestAge(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 59 * time.Second: "59s", 90 * time.Minute: "1h", 47 * time.Hour: "47h", 3 * day: "3d",
		59 * day: "59d", 70 * day: "2mo", 720 * day: "23mo", 1000 * day: "2y",
	} {
		if got := age(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestOffsetRanges(t *testing.T) {
	got, err := offsetRanges([]string{"12", " 40-57", "0-0"})
	want := []tapedeck.OffsetRange{{From: 12, To: 13}, {From: 40, To: 58}, {From: 0, To: 1}}
	if err != nil || !cmp.Equal(got, want) {
		t.Error(err, cmp.Diff(want, got))
	}
	for _, in := range []string{"", "-", "5-", "-5", "7-3", "a", "1-2-3", "9999999999999999999"} {
		if got, err := offsetRanges([]string{in}); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}

// Printed views contain text from agents, so no text in them may control the terminal.
func TestViewsArePrinted(t *testing.T) {
	const evil = `e\u001b[2Jvil`
	for _, c := range []struct {
		name  string
		print func(terminal.Pen, []byte) error
		in    string
		want  string
	}{
		{"summary", printRaw(printSummary), `{"status":"failed","events":12,"inherited_events":3,"axis":"time","recording_ms":4543,"duration_ms":4321,"turns":2,
			"tokens":{"input":10,"output":20},"cost_usd":0.25,"tools":[{"name":"` + evil + `","count":2,"failed":1}],
			"files_modified":["` + evil + `"],"lines_added":3,"lines_removed":1}`,
			"status     failed\nevents     12 and 3 inherited\nlength     4.5s\nruns took  4.3s\nturns      2\ntokens     10 in, 20 out, $0.2500\n" +
				"tool       e\ufffd[2Jvil 2×, 1 failed\nfile       e\ufffd[2Jvil\nlines      +3 -1\n"},
		{"tasks", printRaw(printTasks), `{"tasks":[{"invocation":"inv_1","thread":"main","task":"` + evil + `","status":"complete","first":1},
			{"invocation":"inv_2","thread":"review","task":"look","status":"cancelled","first":40}]}`,
			"     1  inv_1  complete     e\ufffd[2Jvil\n    40  inv_2  cancelled    [review] look\n"},
		{"branches", printRaw(printBranches), `{"branches":[{"id":"a","kind":"main","session":"a","title":"` + evil + `"},
			{"id":"mrk_1","kind":"rewound","session":"a","parent":"a","fork_at":5,"from":5,"to":9},
			{"id":"b","kind":"fork","session":"b","parent":"a","fork_at":7,"current":true},
			{"id":"c","kind":"fork","session":"c","parent":"b","fork_at":8}]}`,
			"a  main  e\ufffd[2Jvil\n  mrk_1  rewound at 5, 5 to 9\n  b  fork at 7\n    c  fork at 8\n"},
		{"context", printRaw(printContext), `{"messages":[{"role":"user","content":"one\ntwo"},{"role":"assistant","content":null,
			"tool_calls":[{"id":"1","type":"function","function":{"name":"Read","arguments":"{\"f\":\"` + strings.ReplaceAll(evil, `\`, `\\`) + `\"}"}}]}],
			"places":[{"sequence_number":0,"offset":1,"end_offset":1},{"sequence_number":1,"offset":3,"end_offset":null}],
			"events":[{"sequence_number":0,"event_type":"user_message"},{"sequence_number":1,"event_type":"assistant_message"},{"sequence_number":2,"event_type":"tool_call","tool_call_id":"1","offset":4}]}`,
			"0 @1               user      one\n                             two\n1 @3-…             assistant \n2 @4-…             call      Read {\"f\":\"e\\u001b[2Jvil\"}\n"},
	} {
		var out bytes.Buffer
		if err := c.print(terminal.Pen{W: &out, Width: 100}, []byte(c.in)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if out.String() != c.want {
			t.Errorf("%s: %s", c.name, cmp.Diff(c.want, out.String()))
		}
	}
}

// printRaw returns a print that decodes the view first, as the client does.
func printRaw[T any](print func(terminal.Pen, T) error) func(terminal.Pen, []byte) error {
	return func(p terminal.Pen, raw []byte) error {
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		return print(p, v)
	}
}
