package process

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// ordered returns a narrator that fails the test if its events break the order of
// the log, and a function that the caller calls after the last event.
func ordered(t *testing.T) (*narrate.Narrator, func()) {
	v := order.NewVerifier()
	add := func(e tapedeck.Event) {
		t.Helper()
		e.Invocation, e.Thread = "inv", "main"
		if err := e.Check(); err != nil {
			t.Errorf("%s %s: %v", e.Type, e.Data, err)
		}
		if err := payload.CheckData(&e); err != nil {
			t.Errorf("%s %s: %v", e.Type, e.Data, err)
		}
		if err := v.Add(&e); err != nil {
			t.Errorf("%s %s: %v", e.Type, e.Data, err)
		}
	}
	run := []byte(`{"threadId":"main","runId":"inv"}`)
	add(tapedeck.Event{Type: tapedeck.RunStarted, Data: run})
	n := narrate.New("inv", func(e tapedeck.Event, _ error) bool { add(e); return true })
	return n, func() {
		n.Done()
		add(tapedeck.Event{Type: tapedeck.RunFinished, Data: run})
	}
}

// FuzzLines checks that no output of a program, in any dialect, makes events that
// break the order of the log.
func FuzzLines(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"type":"stream_event","event":{"type":"content_block_delta","index":-1}}
{"type":"assistant","parent_tool_use_id":"a","message":{"id":"m","content":[{"type":"tool_use","id":"a"},{"type":"text","text":"x"}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a"}]}}
{"type":"assistant","parent_tool_use_id":"a","message":{"id":"m","content":[{"type":"text","text":"x"}]}}
{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"x"}]}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, name := range Dialects() {
			if name == Mapped || len(in) > 1<<16 {
				continue
			}
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			a := &attempt{runner: &Runner{Options{Name: "x"}, dialects[name]}, ctx: gone, life: gone, out: make(chan []byte)}
			n, end := ordered(t)
			a.stream = newStream(tapedeck.Invocation{ID: "inv"}, n, a)
			for line := range bytes.Lines(bytes.ToValidUTF8(in, nil)) {
				if line = bytes.TrimSpace(line); len(line) > 0 {
					a.stream.line(line)
				}
			}
			end()
			a.others.Wait()
		}
	})
}
