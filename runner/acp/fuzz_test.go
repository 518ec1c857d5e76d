package acp

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonrpc"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

var said = regexp.MustCompile(`\{"sessionUpdate":.*?\}\}|\{"toolCall":.*?\}\}`)

// FuzzUpdates checks that no message of an agent makes events that break the order of the
// log.
func FuzzUpdates(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Join(said.FindAll(b, -1), []byte("\n")))
	}
	f.Add([]byte(`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}
{"sessionUpdate":"tool_call","toolCallId":"c","rawInput":{"a":1}}
{"sessionUpdate":"tool_call","toolCallId":"c","status":"failed","_meta":{"terminal_exit":{}}}
{"toolCall":{"toolCallId":"c"},"options":[{"optionId":""}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		v := order.NewVerifier()
		add := func(e tapedeck.Event) {
			e.Invocation, e.Thread = "inv", "main"
			err := e.Check()
			if err == nil {
				err = payload.CheckData(&e)
			}
			if err == nil {
				err = v.Add(&e)
			}
			if err != nil {
				t.Errorf("%s %s: %v", e.Type, e.Data, err)
			}
		}
		run := []byte(`{"threadId":"main","runId":"inv"}`)
		add(tapedeck.Event{Type: tapedeck.RunStarted, Data: run})
		n := narrate.New("inv", func(e tapedeck.Event, _ error) bool { add(e); return true })
		c := &conversation{
			runner: New(Options{Name: "opencode"}), ctx: context.Background(), in: tapedeck.Invocation{ID: "inv"}, n: n,
			tools: map[string]*tool{}, subs: map[string]bool{}, native: "s", peer: jsonrpc.New(strings.NewReader(""), io.Discard, nil), quirks: quirksOf("opencode"),
		}
		c.life, c.finish = context.WithCancel(context.Background())
		c.finish()
		for line := range bytes.Lines(bytes.ToValidUTF8(in, nil)) {
			line = bytes.TrimSpace(line)
			if parsed := append([]byte(`{"sessionId":"s","update":`), append(bytes.Clone(line), '}')...); len(line) > 0 {
				c.handle(jsonrpc.Message{Method: "session/update", Params: parsed})
				c.handle(jsonrpc.Message{Method: "session/request_permission", ID: []byte("1"), Params: line})
			}
		}
		c.spend(in)
		n.Done()
		add(tapedeck.Event{Type: tapedeck.RunFinished, Data: run})
		c.others.Wait()
	})
}
