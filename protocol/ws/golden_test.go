package ws_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

// Each conversation begins with prose. "open NAME" opens a socket: its lines are a path
// below /api/v1 and the subprotocols that it names. "send NAME" sends its text as one message, and
// "receive NAME" has what arrives until nothing happens any more. "request" is a request
// without a WebSocket client. "append SESSION" appends events, one a line, each by itself.
// "session" creates a session, and "stop" stops the server.
// The clock stands still at the beginning of the year 2000.
func TestConversations(t *testing.T) {
	apitest.Conversations(t, func(t *testing.T, _ string, files []txtar.File) (out []txtar.File) {
		synctest.Test(t, func(t *testing.T) { out = converse(t, files) })
		return out
	})
}

func converse(t *testing.T, files []txtar.File) (out []txtar.File) {
	w := newWorld(t)
	defer w.stop(t)
	peers := make(map[string]*peer)
	for _, f := range files {
		verb, name, _ := strings.Cut(f.Name, " ")
		text := strings.TrimSuffix(string(f.Data), "\n")
		switch verb {
		case "session":
			if _, err := w.Create(t.Context(), api.NewSession{ID: text}); err != nil {
				t.Fatal(err)
			}
		case "append":
			for line := range strings.SplitSeq(text, "\n") {
				var e tapedeck.Event
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatalf("%v in %s", err, line)
				}
				if _, err := w.Append(t.Context(), tapedeck.Append{Session: name, Events: []tapedeck.Event{e}}); err != nil {
					t.Fatal(err)
				}
			}
		case "open":
			lines := strings.Split(text, "\n")
			peers[name] = w.dial(t, lines[0], lines[1:]...)
			defer func() { _ = peers[name].CloseNow() }()
		case "send":
			peers[name].send(t, text)
		case "leave":
			_ = peers[name].CloseNow()
		case "request":
			out = append(out, f, txtar.File{Name: "response", Data: []byte(w.ask(t, text+"\n\n"))})
			continue
		case "receive":
			f.Data = []byte(generated.ReplaceAllString(inOrder(peers[name].received()), "${1}_…"))
		case "response":
			continue
		default:
			t.Fatalf("%s cannot be done", f.Name)
		}
		out = append(out, f)
	}
	return out
}

// generated are the ids that the server makes.
var generated = regexp.MustCompile(`\b(inv|msg|call|clr|rew|req)_[0-9A-Za-z]{20,}`)

// inOrder sorts what several goroutines of the server send: the answers to appends and the
// errors of the socket, then the rest of each session.
func inOrder(received string) string {
	lines := strings.SplitAfter(received, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	rank := func(line string) string {
		var f struct {
			Type, Session string
			Seq           *int
		}
		switch err := json.Unmarshal([]byte(line), &f); {
		case err != nil:
			return "~" // the close frame
		case f.Seq != nil || f.Type == "error" && f.Session == "":
			return ""
		}
		return "session " + f.Session
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return strings.Join(lines, "")
}
