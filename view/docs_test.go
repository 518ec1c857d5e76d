package view_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/view"
)

const viewsDoc = "../docs/views.md"

// docViews returns the views of a log by their names in the document.
func docViews(events []tapedeck.Event) map[string]any {
	var jumps []tapedeck.Jump
	for i := range events {
		if j, ok := events[i].Jump(); ok {
			jumps = append(jumps, j)
		}
	}
	timeline, head := view.NewTimeline(jumps), int64(len(events))
	var isActive []tapedeck.Event
	for _, e := range events {
		if e.Channel == tapedeck.ChannelSession || timeline.Has(e.Offset, e.Thread, head) {
			isActive = append(isActive, e)
		}
	}
	session := tapedeck.Session{ID: "ses_1", Head: head, Created: events[0].Time}
	for i := range events {
		session.Apply(&events[i])
	}
	x, s := index(events), fold(isActive).Snapshot()
	return map[string]any{
		"summary": summarize(0, events).Summary(), "replay-index": x, "instances": instances(isActive).Instances("ses"), "tasks": view.Tasks(s),
		"context": view.Context(s, view.InThread("")), "context-events": view.ContextEvents(s, view.InThread("")),
		"branches": view.Branches(view.BranchInput{Session: session, At: head, Jumps: events, Index: *x}),
	}
}

var docBlock = regexp.MustCompile("(?s)```(ndjson|json [a-z-]+)\n(.*?)```")

// TestDocExamples compares the examples in the document with the views of its
// log.
func TestDocExamples(t *testing.T) {
	text, err := os.ReadFile(viewsDoc)
	if err != nil {
		t.Fatal(err)
	}
	var views map[string]any
	shown := 0
	out := docBlock.ReplaceAllFunc(text, func(block []byte) []byte {
		m := docBlock.FindSubmatch(block)
		name, is := strings.CutPrefix(string(m[1]), "json ")
		if !is {
			views = docViews(docLog(t, m[2]))
			return block
		}
		got := mustLines(t, views[name])
		if !*update && !cmp.Equal(value(t, m[2]), value(t, got)) {
			t.Errorf("%s: %s", name, cmp.Diff(value(t, m[2]), value(t, got)))
		}
		shown++
		return []byte("```json " + name + "\n" + string(got) + "\n```")
	})
	if shown != len(views) {
		t.Errorf("%d of %d views have an example", shown, len(views))
	}
	if *update {
		if err := os.WriteFile(viewsDoc, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// docLog reads the log in the document, and checks that an engine could have
// written it.
func docLog(t *testing.T, lines []byte) (events []tapedeck.Event) {
	t.Helper()
	v := order.NewVerifier()
	for line := range bytes.Lines(lines) {
		var e tapedeck.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if err := v.Add(&e); err != nil || e.Offset != int64(len(events)) || e.Channel != tapedeck.ChannelOf(e.Type) {
			t.Errorf("%s: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// mustLines encodes a list with one entry per line, or an object with one
// member per line.
func mustLines(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for dec.More() {
		name := ""
		if open == json.Delim('{') {
			token, _ := dec.Token()
			name = string(mustEncoded(t, token)) + ": "
		}
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "  "+name+string(item))
	}
	body := "\n" + strings.Join(lines, ",\n") + "\n"
	if open == json.Delim('{') {
		return []byte("{" + body + "}")
	}
	return []byte("[" + body + "]")
}

func mustEncoded(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// docTables has the types that the tables in the document describe, in order.
var docTables = []reflect.Type{
	reflect.TypeFor[view.Summary](), reflect.TypeFor[view.ModelUsage](), reflect.TypeFor[view.ToolUsage](),
	reflect.TypeFor[view.Index](), reflect.TypeFor[view.IndexedInvocation](), reflect.TypeFor[view.Marker](),
	reflect.TypeFor[view.Gap](), reflect.TypeFor[view.Stretch](), reflect.TypeFor[view.Density](),
	reflect.TypeFor[view.ContextMessage](), reflect.TypeFor[view.ContextEvent](), reflect.TypeFor[view.Instance](),
	reflect.TypeFor[view.Task](), reflect.TypeFor[view.Branch](), reflect.TypeFor[view.Workflow](),
}

var docName = regexp.MustCompile("`([a-z_]+)`")

// TestDocTables checks that the tables in the document have the members of the
// views in the same order.
func TestDocTables(t *testing.T) {
	text, err := os.ReadFile(viewsDoc)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "| member | |\n|---|---|\n")
	for _, typ := range docTables {
		if !found {
			t.Fatalf("there is no table of %s", typ)
		}
		var got []string
		for line := range strings.Lines(rest) {
			cells := strings.Split(line, "|")
			if len(cells) < 3 {
				break
			}
			for _, m := range docName.FindAllStringSubmatch(cells[1], -1) {
				got = append(got, m[1])
			}
		}
		if want := jsonNames(typ); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", typ, cmp.Diff(want, got))
		}
		_, rest, found = strings.Cut(rest, "| member | |\n|---|---|\n")
	}
	if found {
		t.Error("there are more tables")
	}
}

func jsonNames(typ reflect.Type) (names []string) {
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			names = append(names, jsonNames(f.Type)...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}
