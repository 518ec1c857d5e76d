package testmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

type object = map[string]any

// Every answer reports this usage. It is constant, so that tests can compare it.
const (
	inputTokens     = 100
	cachedTokens    = 40
	outputTokens    = 20
	reasoningTokens = 5
)

// argsPiece is how many bytes of arguments one event has.
const argsPiece = 20

// A reply writes one answer to a client.
type reply struct {
	w      http.ResponseWriter
	r      *http.Request
	model  *Model
	prompt prompt
	pause  time.Duration
	left   int // number of words before the connection breaks; -1 for no break
	begun  bool
}

func (o *reply) id(prefix string) string { return o.model.id(prefix) }

// event writes one event of the stream. If the client has disconnected, it ends the
// handler by a panic.
func (o *reply) event(name string, v any) {
	if o.r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	if !o.begun {
		o.w.Header().Set("Content-Type", "text/event-stream")
		o.begun = true
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // never happens: this package built the value
	}
	if name != "" {
		_, _ = fmt.Fprintf(o.w, "event: %s\n", name)
	}
	_, _ = fmt.Fprintf(o.w, "data: %s\n\n", data)
	o.flush()
}

func (o *reply) flush() { _ = http.NewResponseController(o.w).Flush() }

// words writes a text word by word, with a pause before each word.
func (o *reply) words(text string, write func(piece string)) {
	for _, piece := range words(text) {
		if o.left == 0 {
			panic(http.ErrAbortHandler)
		}
		o.left--
		o.wait()
		write(piece)
	}
}

func (o *reply) wait() {
	if o.pause == 0 {
		return
	}
	t := time.NewTimer(o.pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// pieces writes arguments in small pieces.
func pieces(args json.RawMessage, write func(piece string)) {
	for s := string(args); s != ""; {
		n := min(argsPiece, len(s))
		for n < len(s) && s[n]&0xC0 == 0x80 { // do not split a character
			n++
		}
		write(s[:n])
		s = s[n:]
	}
}
