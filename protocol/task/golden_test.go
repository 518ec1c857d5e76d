package task_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

// Each conversation begins with prose. It continues with events that are appended to
// session s, one a line, and with requests and the responses to them. The clock stands
// still at the beginning of the year 2000, so that times can be compared.
func TestConversations(t *testing.T) {
	apitest.Conversations(t, func(t *testing.T, _ string, files []txtar.File) (out []txtar.File) {
		synctest.Test(t, func(t *testing.T) { out = converse(t, files) })
		return out
	})
}

func converse(t *testing.T, files []txtar.File) (out []txtar.File) {
	h, l := newHandler()
	for _, f := range files {
		switch f.Name {
		case "append":
			appendLines(t, l, f.Data)
			out = append(out, f)
		case "request":
			response := apitest.Ask(t, h, f.Data, "Content-Type", "Cache-Control", "Vary", "Allow")
			out = append(out, f, txtar.File{Name: "response", Data: response})
		}
	}
	return out
}

// appendLines appends events. session.created creates the session.
func appendLines(t *testing.T, l log, lines []byte) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		var e tapedeck.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if e.Type == tapedeck.SessionCreated {
			l.create(t, e)
		} else {
			l.append(t, e)
		}
	}
}
