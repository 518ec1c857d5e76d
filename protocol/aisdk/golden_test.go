package aisdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

// Each conversation begins with prose. It continues with
//
//   - append: events that another program appends to session s, one a line;
//   - request, and the response to it;
//   - open NAME: a request whose response is a stream, and received NAME, what its
//     client has received when nothing moves any more;
//   - proceed: the agent that waits continues.
//
// In requests and responses RUN1 is the id of the first run, RUN2 that of the second.
// The clock stands still at the beginning of the year 2000.
func TestConversations(t *testing.T) {
	apitest.Conversations(t, func(t *testing.T, _ string, files []txtar.File) (out []txtar.File) {
		synctest.Test(t, func(t *testing.T) { out = converse(t, files) })
		return out
	})
}

func converse(t *testing.T, files []txtar.File) (out []txtar.File) {
	w := newWorld(t)
	streams := map[string]*apitest.Client{}
	for _, f := range files {
		switch name, arg, _ := strings.Cut(f.Name, " "); name {
		case "append":
			w.appendLines(f.Data)
			out = append(out, f)
		case "request":
			response := apitest.Ask(t, w.handler, w.runs.original(f.Data), "Content-Type", "X-Vercel-Ai-Ui-Message-Stream")
			out = append(out, f, txtar.File{Name: "response", Data: w.runs.named(response)})
		case "open":
			streams[arg] = new(apitest.Client)
			streams[arg].Send(w.handler, parseRequest(t, w.runs.original(f.Data)))
			out = append(out, f)
		case "received":
			synctest.Wait()
			out = append(out, txtar.File{Name: f.Name, Data: w.runs.named([]byte(strings.TrimRight(streams[arg].Text(), "\n") + "\n"))})
		case "proceed":
			w.proceed <- struct{}{}
			out = append(out, f)
		}
	}
	for _, s := range streams {
		s.Disconnect()
	}
	return out
}

// A runNames names the runs of a conversation by their order: their ids are random.
type runNames []string

var runID = regexp.MustCompile(`inv_[0-9A-Z]{26}`)

func (n *runNames) named(text []byte) []byte {
	return runID.ReplaceAllFunc(text, func(id []byte) []byte {
		i := slices.Index(*n, string(id))
		if i < 0 {
			i = len(*n)
			*n = append(*n, string(id))
		}
		return fmt.Appendf(nil, "RUN%d", i+1)
	})
}

func (n *runNames) original(text []byte) []byte {
	for i, id := range *n {
		text = bytes.ReplaceAll(text, fmt.Appendf(nil, "RUN%d", i+1), []byte(id))
	}
	return text
}

// appendLines appends events to session s, which the first one creates.
func (w *world) appendLines(lines []byte) {
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

// parseRequest reads a request as [apitest.Ask] does.
func parseRequest(t *testing.T, request []byte) *http.Request {
	t.Helper()
	head, body, _ := bytes.Cut(request, []byte("\n\n"))
	method, path, _ := strings.Cut(strings.TrimSpace(string(head)), " ")
	path, fields, _ := strings.Cut(path, "\n")
	r := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(body))
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		r.Header.Set(name, value)
	}
	return r
}
