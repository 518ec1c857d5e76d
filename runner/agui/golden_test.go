package agui_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

var update = flag.Bool("update", false, "write the events into the conversations")

var invented = regexp.MustCompile(`think_[0-9A-Za-z]+|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// Each conversation has the stream of an agent, and the events that the log gets.
func TestConversations(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no conversations")
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			stream := string(a.Files[0].Data)
			if strings.Contains(string(a.Comment), "CR LF") {
				stream = strings.ReplaceAll(stream, "\n", "\r\n")
			}
			message := payload.NewMessage("u1", payload.RoleUser, "Plan a trip")
			raw, _ := message.MarshalJSON()
			_, events, err := run(t, runnerOf(answering(stream)), tapedeck.Invocation{ID: "inv_1", Task: "Plan a trip", Message: raw})
			ids := map[string]string{}
			var out strings.Builder
			for _, e := range events {
				data := invented.ReplaceAllStringFunc(string(e.Data), func(id string) string {
					if ids[id] == "" {
						ids[id] = fmt.Sprintf("ID%d", len(ids)+1)
					}
					return ids[id]
				})
				fmt.Fprintln(&out, e.Type, data)
			}
			fmt.Fprintln(&out, "error:", err)
			got := &txtar.Archive{Comment: a.Comment, Files: []txtar.File{a.Files[0], {Name: "events", Data: []byte(out.String())}}}
			if *update {
				if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(got))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
