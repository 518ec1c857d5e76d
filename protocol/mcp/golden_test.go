package mcp_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

// Each conversation begins with prose. Requests follow, each with the response to it. The
// clock stands still at the beginning of the year 2000, so that times can be compared. CALL
// stands for what each request says of its client.
func TestConversations(t *testing.T) {
	apitest.Conversations(t, func(t *testing.T, name string, files []txtar.File) (out []txtar.File) {
		synctest.Test(t, func(t *testing.T) { out = converse(t, name, files) })
		return out
	})
}

func converse(t *testing.T, name string, files []txtar.File) (out []txtar.File) {
	d := openDeck(t, deck.Options{AnyHost: true, Version: "1", MCPWrite: strings.Contains(name, "write")})
	for _, f := range files {
		if f.Name != "request" {
			continue
		}
		synctest.Wait() // until the index has everything
		request := strings.ReplaceAll(string(f.Data), `"CALL"`, metaOfRequest)
		response := apitest.Ask(t, d.Handler(), []byte(request), "Content-Type", "Cache-Control", "Allow")
		out = append(out, f, txtar.File{Name: "response", Data: response})
	}
	return out
}

// TestDocs: the endpoint answers the requests in the documentation as it says.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/protocol/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```http (\\d+)\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(examples) < 5 {
		t.Fatalf("%d examples", len(examples))
	}
	w := newWorld(t, deck.Options{AnyHost: true, MCPWrite: true})
	w.create(t, "trip", "Plan a trip to Bern")
	for _, m := range examples {
		got := apitest.Ask(t, w.Handler(), m[2])
		if !strings.HasPrefix(string(got), string(m[1])) || strings.Contains(string(got), `"isError":true`) || strings.Contains(string(got), `"error":`) {
			t.Errorf("want %s for\n%s\ngot\n%s", m[1], m[2], got)
		}
	}
	for _, want := range append(readers, "list_agents", "run_agent", "cancel_run", "rewind_session", "fork_session") {
		if !strings.Contains(string(doc), "| `"+want+"` |") {
			t.Errorf("docs/protocol/mcp.md does not have %s", want)
		}
	}
}
