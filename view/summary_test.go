package view_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
	"github.com/tapedeck/tapedeck/view/viewtest"
)

// A viewFixture is a log with its expected view, for views other than the
// conversation. Implementations in other languages use the same files: compare
// the expected views as JSON values.
type viewFixture struct {
	About    string            `json:"about"`
	Own      int64             `json:"own,omitempty"`      // offset of the session's first own event
	Instance string            `json:"instance,omitempty"` // for a context: its instance; "" for that of the main thread
	Session  *json.RawMessage  `json:"session,omitempty"`  // the catalogue entry
	Forks    []json.RawMessage `json:"forks,omitempty"`    // catalogue entries
	Parents  []json.RawMessage `json:"ancestors,omitempty"`
	Events   []json.RawMessage `json:"events"`
	Expected json.RawMessage   `json:"expected"`
}

// testFixtures compares the views of all files in a folder with the expected
// ones.
func testFixtures(t *testing.T, folder string, fold func(t *testing.T, f viewFixture, events []tapedeck.Event) any) {
	files, _ := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if len(files) == 0 {
		t.Fatal("no fixtures")
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var f viewFixture
			if err := json.Unmarshal(b, &f); err != nil {
				t.Fatal(err)
			}
			got := encode(t, fold(t, f, fixture{Events: f.Events}.events(t)))
			if *update {
				f.Expected = got
				f.write(t, path)
				return
			}
			if diff := cmp.Diff(value(t, f.Expected), value(t, got)); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", f.About, diff)
			}
		})
	}
}

// write writes one event per line, so that people can read the file.
func (f *viewFixture) write(t *testing.T, path string) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("{\n")
	member := func(name string, raw []byte) { fmt.Fprintf(&b, "  %q: %s,\n", name, raw) }
	list := func(name string, items []json.RawMessage) {
		fmt.Fprintf(&b, "  %q: [", name)
		for i, item := range items {
			b.WriteString([]string{",\n    ", "\n    "}[min(1, max(0, 1-i))])
			if err := json.Compact(&b, item); err != nil {
				t.Fatal(err)
			}
		}
		b.WriteString("\n  ],\n")
	}
	member("about", encode(t, f.About))
	if f.Own > 0 {
		member("own", encode(t, f.Own))
	}
	if f.Instance != "" {
		member("instance", encode(t, f.Instance))
	}
	if f.Session != nil {
		member("session", encode(t, f.Session))
	}
	if f.Forks != nil {
		list("forks", f.Forks)
	}
	if f.Parents != nil {
		list("ancestors", f.Parents)
	}
	list("events", f.Events)
	fmt.Fprintf(&b, "  \"expected\": %s\n}\n", f.Expected)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func summarize(own int64, events []tapedeck.Event) *view.SummaryFold {
	f := view.NewSummaryFold(own)
	for i := range events {
		f.Apply(&events[i])
	}
	return f
}

func TestSummaryFixtures(t *testing.T) {
	testFixtures(t, "summary", func(_ *testing.T, f viewFixture, events []tapedeck.Event) any {
		return summarize(f.Own, events).Summary()
	})
}

// viewShapes are the events that only the other views fold.
var viewShapes = []viewtest.Shape{
	{Type: "TOOL_CALL_START", Data: `{"toolCallId":"w%s","toolCallName":"Write"}`},
	{Type: "TOOL_CALL_ARGS", Data: `{"toolCallId":"w%s","delta":"{\"file_path\":\"a\",\"content\":\"1\\n2\"}"}`},
	{Type: "TOOL_CALL_END", Data: `{"toolCallId":"w%s"}`},
	{Type: "TOOL_CALL_RESULT", Data: `{"toolCallId":"w%s","messageId":"wr","content":"ok"}`},
	{Type: "TOOL_CALL_RESULT", Data: `{"toolCallId":"w%s","messageId":"wr","content":"no","error":"full"}`},
	{Type: tapedeck.UsageReported, Data: `{"model":"m%s","inputTokens":10,"outputTokens":3,"costUsd":0.25}`},
	{Type: "RUN_FINISHED", Data: `{"threadId":"t","runId":"i","usage":[{"model":"m%s","inputTokens":7,"totalTokens":9}]}`},
	{Type: tapedeck.InstanceStarted, Data: `{"id":"ins_%s","name":"coder","parent":"ins_2"}`},
	{Type: "SUBAGENT_STARTED", Data: `{"subagentRunId":"s%s","name":"search","parentSubagentRunId":"s1"}`},
	{Type: "SUBAGENT_FINISHED", Data: `{"subagentRunId":"s%s"}`},
	{Type: "SUBAGENT_ERROR", Data: `{"subagentRunId":"s%s","message":"lost"}`},
	{Type: tapedeck.PermissionRequested, Data: `{"id":"p%s","message":"may I?","options":[]}`},
	{Type: tapedeck.BookmarkAdded, Data: `{"offset":1,"label":"look %s"}`},
	{Type: tapedeck.SessionRewound, Data: `{"marker":"r%s","toOffset":2}`},
	{Type: tapedeck.SessionCleared, Data: `{"marker":"x%s","thread":"side"}`},
	{Type: tapedeck.SessionForked, Data: `{"parent":"p%s","at":3}`},
	{Type: tapedeck.WorkflowEntered, Data: `{"element":"task_%s"}`},
	{Type: tapedeck.MessageAdded, Data: `{"message":{"id":"b%s","role":"assistant","toolCalls":[{"id":"w9","function":{"name":"Edit","arguments":"{\"path\":\"b\",\"oldText\":\"x\",\"newText\":\"y\\nz\"}"}}]}}`},
	{Type: tapedeck.MessageAdded, Data: `{"message":{"id":"d%s","role":"tool","content":"yes","toolCallId":"w9"}}`},
}

func drawRaw(t *rapid.T) []tapedeck.Event {
	small := rapid.SampledFrom([]string{"1", "2", "3"})
	all := slices.Concat(viewtest.Shapes, viewShapes)
	events := make([]tapedeck.Event, rapid.IntRange(0, 80).Draw(t, "length"))
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for i := range events {
		s := rapid.SampledFrom(all).Draw(t, "shape")
		at = at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 1000, 2001, 60_000, -500}).Draw(t, "pause")) * time.Millisecond)
		events[i] = tapedeck.Event{
			Offset: int64(i), Type: s.Type, Channel: tapedeck.ChannelOf(s.Type), Time: at,
			Thread:     rapid.SampledFrom([]string{"", "", "side"}).Draw(t, "thread"),
			Invocation: rapid.SampledFrom([]string{"", "i1", "i2", "i3"}).Draw(t, "invocation"),
			Instance:   rapid.SampledFrom([]string{"", "", "", "ins_1", "ins_3"}).Draw(t, "instance"),
			Turn:       rapid.IntRange(0, 3).Draw(t, "turn"),
			Data:       json.RawMessage(s.Data),
		}
		if strings.Contains(s.Data, "%s") {
			events[i].Data = json.RawMessage(fmt.Sprintf(s.Data, small.Draw(t, "id")))
		}
	}
	return events
}

// checkpoint returns a fold after encoding and decoding it.
func checkpoint[F any](t rapid.TB, f F) *F {
	t.Helper()
	again := new(F)
	if err := json.Unmarshal([]byte(mustJSON(t, &f)), again); err != nil {
		t.Fatal(err)
	}
	return again
}

func TestSummaryContinuesFromACheckpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawRaw(t)
		own := int64(rapid.IntRange(0, len(events)).Draw(t, "own"))
		want := mustJSON(t, summarize(own, events).Summary())
		f := view.NewSummaryFold(own)
		for i := range events {
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				early := f.Summary()
				was := mustJSON(t, early)
				f = checkpoint(t, *f)
				f.Apply(&events[max(i-1, 0)]) // repeat an event
				if now := mustJSON(t, early); now != was {
					t.Fatalf("a summary has changed since it was taken:\n%s", cmp.Diff(was, now))
				}
			}
			f.Apply(&events[i])
		}
		if got := mustJSON(t, f.Summary()); got != want {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

// TestSummaryStateIsBounded: the size of a checkpoint stays bounded, however
// large the session is.
func TestSummaryStateIsBounded(t *testing.T) {
	f := view.NewSummaryFold(0)
	apply := func(i int, typ, data string) {
		f.Apply(&tapedeck.Event{
			Offset: f.Next(), Type: typ, Channel: tapedeck.ChannelOf(typ), Invocation: fmt.Sprint("i", i), Thread: fmt.Sprint("t", i),
			Data: json.RawMessage(data),
		})
	}
	for i := range 3000 {
		apply(i, tapedeck.MessageAdded, fmt.Sprintf(`{"message":{"id":"%d","role":"user","content":"x"}}`, i))
		apply(i, tapedeck.RunStarted, `{}`)
		apply(i, tapedeck.UsageReported, fmt.Sprintf(`{"model":"m%d","inputTokens":9223372036854775807,"costUsd":1e308}`, i))
		apply(i, tapedeck.ToolCallStart, fmt.Sprintf(`{"toolCallId":"c%d","toolCallName":"tool%d"}`, i, i))
	}
	for i := range 12_000 {
		apply(i, tapedeck.ToolCallStart, fmt.Sprintf(`{"toolCallId":"w%d","toolCallName":"Write"}`, i))
		apply(i, tapedeck.ToolCallArgs, fmt.Sprintf(`{"toolCallId":"w%d","delta":"{\"path\":\"f%d\",\"content\":\"x\"}"}`, i, i))
		apply(i, tapedeck.ToolCallEnd, fmt.Sprintf(`{"toolCallId":"w%d"}`, i))
		apply(i, tapedeck.ToolCallResult, fmt.Sprintf(`{"toolCallId":"w%d","messageId":"m","content":"ok"}`, i))
	}
	paths := strings.Repeat(strings.Repeat("*** Add File: "+strings.Repeat("p", 900)+`\n`, 10), 100)
	for i := range 500 { // patches without an answer
		apply(1, tapedeck.ToolCallStart, fmt.Sprintf(`{"toolCallId":"p%d","toolCallName":"apply_patch"}`, i))
		apply(1, tapedeck.ToolCallArgs, fmt.Sprintf(`{"toolCallId":"p%d","delta":"%s"}`, i, paths))
		apply(1, tapedeck.ToolCallEnd, fmt.Sprintf(`{"toolCallId":"p%d"}`, i))
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	s := f.Summary()
	if len(b) > 8<<20 || len(s.FilesModified) != 10_000 || s.FilesLeftOut != 2_000 || s.LinesAdded != 12_000 || len(s.Models) > 101 || len(s.Tools) > 1001 {
		t.Errorf("the state has %d bytes; %d files and %d others, %d lines, %d models, %d tools",
			len(b), len(s.FilesModified), s.FilesLeftOut, s.LinesAdded, len(s.Models), len(s.Tools))
	}
	if s.Tokens.Input != 1<<53-1 || s.CostUSD == nil || *s.CostUSD > 1<<60 {
		t.Errorf("%+v cost %v", s.Tokens, s.CostUSD)
	}
}

// FuzzViews folds any data as every type into all views. No fold may panic, and
// each view must be valid JSON.
func FuzzViews(f *testing.F) {
	for _, s := range slices.Concat(viewtest.Shapes, viewShapes) {
		f.Add([]byte(strings.ReplaceAll(s.Data, "%s", "1")), []byte(`{"usage":{},"message":{"role":"user","content":{}},"toolCallId":1,"edits":[[]]}`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !json.Valid(a) || !json.Valid(b) {
			t.Skip()
		}
		var events []tapedeck.Event
		for _, typ := range payload.EventTypes() {
			for _, data := range [][]byte{a, b} {
				events = append(events, tapedeck.Event{
					Offset: int64(len(events)), Type: typ, Channel: tapedeck.ChannelOf(typ), Invocation: "i", Data: data,
				})
			}
		}
		s, all := fold(events).Snapshot(), instances(events).Instances("ses")
		views := []any{
			summarize(0, events), summarize(0, events).Summary(), index(events), instances(events), view.Tasks(s),
			view.Branches(view.BranchInput{At: int64(len(events)), Jumps: events, Index: *index(events)}),
		}
		for _, i := range append(all, view.InThread("")) {
			views = append(views, view.ContextEvents(s, i))
			if why := wellFormed(view.Context(s, i)); why != "" {
				t.Error(why)
			}
		}
		for _, v := range views {
			if _, err := json.Marshal(v); err != nil {
				t.Errorf("%T: %v", v, err)
			}
		}
	})
}
