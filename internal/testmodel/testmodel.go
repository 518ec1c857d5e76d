// Package testmodel is a scripted model: markers in the newest message of the user say
// what it does. It speaks the APIs of four providers, with and without streaming. So
// real agents and our own can be tested without a model, a key or a network.
//
// These are the markers. They can be anywhere in the message:
//
//   - no marker: a short greeting
//   - [think]: reasoning before the rest of the answer
//   - [tools]: a call of a todo tool if there is one, of a shell tool if there is one,
//     of the todo tool again, and a last message
//   - [tool NAME {json}]: a call of that tool with these arguments; several such calls
//     are made one after the other
//   - [run "command"]: a call of a shell tool, if there is one, with the command, which
//     is a JSON string
//   - [answer VALUE]: the last message; VALUE is JSON: the text of a string, otherwise
//     the JSON itself
//   - [parallel]: all calls of the other markers at once
//   - [slow]: many words, each after a pause
//   - [error 429]: the status 429 twice, then the normal answer; any other number is
//     the status of every answer
//   - [cut]: the connection breaks in the middle of the answer
//   - [cut once]: the same, but only in the first answer to this message
//
// The number of tool results after the message determines the next step. Between
// requests only the number of refusals affects its answers.
package testmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxRequest is the largest request that is read, in bytes.
const maxRequest = 64 << 20

// Options configure a model. The zero value is ready.
type Options struct {
	Pace  time.Duration // pause before each word, so that people can watch; 0 for no pause
	Pause time.Duration // pause before each word of a slow answer; 0 for 100 ms
	Words int           // number of words of a slow answer; 0 for 300
	Log   io.Writer     // gets each request as a line of JSON; nil for no log
}

// A Model is an [http.Handler] with the APIs of the providers.
type Model struct {
	options Options
	mux     *http.ServeMux

	mu       sync.Mutex
	requests []Request
	ids      int
	refusals map[string]int // by the message of the user
}

// A Request is a request that a model received.
type Request struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// New returns a model.
func New(o Options) *Model {
	if o.Pause == 0 {
		o.Pause = 100 * time.Millisecond
	}
	if o.Words == 0 {
		o.Words = 300
	}
	m := &Model{options: o, mux: http.NewServeMux(), refusals: map[string]int{}}
	m.handle("POST /v1/chat/completions", readChat, writeChat)
	m.handle("POST /v1/responses", readResponses, writeResponses)
	m.handle("POST /v1/messages", readAnthropic, writeAnthropic)
	m.handle("POST /v1beta/models/", readGemini, writeGemini)
	m.mux.HandleFunc("GET /v1/models", listModels)
	m.mux.HandleFunc("POST /v1/messages/count_tokens", countTokens)
	return m
}

// ServeHTTP implements [http.Handler].
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, r) }

// Requests returns the requests that the model received, oldest first.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Request(nil), m.requests...)
}

// handle serves a path. read decodes a request of the provider, and write writes an
// answer in the provider's format.
func (m *Model) handle(pattern string, read func(*http.Request, []byte) (prompt, error), write func(*reply, answer)) {
	m.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			refuse(w, http.StatusRequestEntityTooLarge, "the request is too large")
			return
		}
		m.note(r, body)
		p, err := read(r, body)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		a := m.answer(p)
		if a.status != 0 {
			w.Header().Set("Retry-After", "1")
			refuse(w, a.status, fmt.Sprintf("the script says %d", a.status))
			return
		}
		out := &reply{w: w, r: r, model: m, prompt: p, pause: a.pause, left: -1}
		if a.cut {
			out.left = len(words(a.text)) / 2
		}
		write(out, a)
	})
}

// note stores a request for [Model.Requests] and logs it.
func (m *Model) note(r *http.Request, body []byte) {
	req := Request{Path: r.URL.Path, Body: body}
	if !json.Valid(body) {
		req.Body, _ = json.Marshal(string(body)) // a string can always be encoded
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, req)
	if m.options.Log == nil {
		return
	}
	if line, err := json.Marshal(req); err == nil {
		_, _ = m.options.Log.Write(append(line, '\n')) // a log that fails must not fail the model
	}
}

func (m *Model) id(prefix string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids++
	return fmt.Sprintf("%s%06d", prefix, m.ids)
}

// refuse answers with an error in a form that the clients of all providers understand.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "error", "error": map[string]any{"type": "scripted", "code": status, "message": message},
	})
}

func listModels(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, object{"object": "list", "data": []object{{"id": "test-model", "object": "model", "owned_by": "test"}}})
}

func countTokens(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, object{"input_tokens": inputTokens})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has disconnected needs no answer
}

// words splits a text after each space. The pieces joined are the text.
func words(text string) []string {
	if text == "" {
		return nil
	}
	pieces := strings.SplitAfter(text, " ")
	if pieces[len(pieces)-1] == "" {
		pieces = pieces[:len(pieces)-1]
	}
	return pieces
}
