package decktest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

// Names replaces ids that differ from run to run. The zero value keeps them.
type Names interface {
	Hide(text []byte) []byte // the text of the server, as the conversation shows it
	Show(text []byte) []byte // the text of the conversation, as the server gets it
}

// Conversations plays the conversations of a protocol, each with a server of its own. A
// conversation begins with prose. It continues with
//
//   - append: events that another program appends to session s, one a line;
//   - request, and the response to it, with the headers shown;
//   - open NAME: a request whose response is a stream, and received NAME, what its
//     client has received when nothing moves any more;
//   - proceed: the agent that waits continues.
//
// The clock stands still at the beginning of the year 2000. names may be nil.
func Conversations(t *testing.T, names func() Names, shown ...string) {
	t.Helper()
	apitest.Conversations(t, func(t *testing.T, _ string, files []txtar.File) (out []txtar.File) {
		var n Names = sameNames{}
		if names != nil {
			n = names()
		}
		synctest.Test(t, func(t *testing.T) { out = New(t).converse(files, n, shown) })
		return out
	})
}

type sameNames struct{}

func (sameNames) Hide(text []byte) []byte { return text }
func (sameNames) Show(text []byte) []byte { return text }

func (w *World) converse(files []txtar.File, names Names, shown []string) (out []txtar.File) {
	streams := map[string]*apitest.Client{}
	for _, f := range files {
		switch name, arg, _ := strings.Cut(f.Name, " "); name {
		case "append":
			w.appendLines(f.Data)
			out = append(out, f)
		case "request":
			response := apitest.Ask(w, w.Handler, names.Show(f.Data), shown...)
			out = append(out, f, txtar.File{Name: "response", Data: names.Hide(response)})
		case "open":
			streams[arg] = new(apitest.Client)
			streams[arg].Send(w.Handler, apitest.Request(w, names.Show(f.Data)))
			out = append(out, f)
		case "received":
			synctest.Wait()
			out = append(out, txtar.File{Name: f.Name, Data: names.Hide([]byte(strings.TrimRight(streams[arg].Text(), "\n") + "\n"))})
		case "proceed":
			w.Proceed <- struct{}{}
			out = append(out, f)
		}
	}
	for _, s := range streams {
		s.Disconnect()
	}
	return out
}

// appendLines appends events to session s, which the first one creates.
func (w *World) appendLines(lines []byte) {
	w.Helper()
	for line := range bytes.Lines(lines) {
		var e tapedeck.Event
		if err := json.Unmarshal(line, &e); err != nil {
			w.Fatalf("%v in %s", err, line)
		}
		if _, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{e}}); err != nil {
			w.Fatalf("%v in %s", err, line)
		}
	}
}

// Post sends a request with a JSON body to a client of its stream, in the background.
func (w *World) Post(c *apitest.Client, path, body string) {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	c.Send(w.Handler, r)
}
