package aisdk_test

import (
	"encoding/json"
	"testing"

	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/internal/decktest"
)

// A world is a whole server in memory, with clients of its streams.
type world struct {
	*decktest.World
}

func newWorld(t testing.TB) *world { return &world{World: decktest.New(t)} }

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

// run sends a request and returns the client when the stream has ended.
func (w *world) run(path, body string) *reader {
	w.Helper()
	r := w.open(path, body)
	<-r.Done
	return r
}

// request returns the body of a request with one new message of the user.
func request(chat, id, text string) string {
	b, _ := json.Marshal(map[string]any{
		"id": chat, "trigger": "submit-message",
		"messages": []map[string]any{{"id": id, "role": "user", "parts": []map[string]string{{"type": "text", "text": text}}}},
	})
	return string(b)
}
