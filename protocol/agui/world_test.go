package agui_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/internal/decktest"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// A world is a whole server in memory, with clients of its streams.
type world struct{ *decktest.World }

func newWorld(t testing.TB) *world { return &world{decktest.New(t)} }

// A reader is a client of one stream.
type reader struct {
	apitest.Client
	w *world
}

// open sends a request in the background.
func (w *world) open(path, body string) *reader {
	w.Helper()
	r := &reader{w: w}
	w.Post(&r.Client, path, body)
	return r
}

// events returns the events that were received.
func (r *reader) events() (list []map[string]any) {
	r.w.Helper()
	for f, err := range sse.Read(strings.NewReader(r.Text())) {
		if err != nil {
			r.w.Fatal(err)
		}
		var e map[string]any
		d := json.NewDecoder(bytes.NewReader(f.Data))
		if err := d.Decode(&e); err != nil {
			r.w.Fatalf("%v in %.200s", err, f.Data)
		}
		list = append(list, e)
	}
	return list
}

// run sends a request and returns the client when the stream has ended.
func (w *world) run(path, body string) *reader {
	w.Helper()
	r := w.open(path, body)
	<-r.Done
	return r
}

// input returns a RunAgentInput with one new message.
func input(thread, run, message, text string) string {
	return inputOf(thread, run, []map[string]any{{"id": message, "role": "user", "content": text}})
}

func inputOf(thread, run string, messages []map[string]any) string {
	b, _ := json.Marshal(map[string]any{"protocolVersion": "1.0", "threadId": thread, "runId": run, "messages": messages})
	return string(b)
}
