package channels_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/protocol/rest/channels"
)

var update = flag.Bool("update", false, "write what events become into the fixtures")

// TestGolden translates the lines of each fixture, as one request, and compares.
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no fixtures")
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil || len(a.Files) < 1 {
				t.Fatal(err)
			}
			got := translate(t, a.Files[0].Data)
			if *update {
				a.Files = []txtar.File{a.Files[0], {Name: "events", Data: got}}
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[1].Data), string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func translate(t *testing.T, lines []byte) []byte {
	n := 0
	tr := channels.Translator{
		Session: "s",
		Called: func(_, id string) (channels.Known, error) {
			return map[string]channels.Known{"told": channels.Made, "over": channels.Answered}[id], nil
		},
		NewID: func(prefix string) string { n++; return fmt.Sprint(prefix, n) },
	}
	var v order.Verifier
	var out bytes.Buffer
	for line := range strings.Lines(string(lines)) {
		line = strings.TrimSpace(line)
		if !channels.Is([]byte(line)) && !channels.IsAt([]byte(line)) {
			t.Errorf("it is not taken for one: %s", line)
		}
		events, err := tr.Translate([]byte(line))
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
			continue
		}
		if _, err := v.Accept(events); err != nil {
			t.Errorf("the log would refuse what %s becomes: %v", line, err)
		}
		for _, e := range events {
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			_, b, _ = bytes.Cut(b, []byte(`,`))
			out.Write(bytes.ReplaceAll(append(append([]byte("{"), b...), '\n'), []byte(`"timestamp":"0001-01-01T00:00:00.000Z",`), nil))
		}
	}
	return out.Bytes()
}

// TestOthersAreLeftAlone: what is no event of these schemas is refused as before.
func TestOthersAreLeftAlone(t *testing.T) {
	for _, line := range []string{`{}`, `[]`, `{"type":"a","channel":"chunks"}`, `{"id":"a","type":"b"}`, `{"channel":"chunks"`} {
		if channels.Is([]byte(line)) {
			t.Errorf("%s is taken for one", line)
		}
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add([]byte(`{"channel":"chunks","id":"c","agentId":"a","text":"hi","turn":1,"timestamp":1705847}`))
	f.Add([]byte(`{"channel":"toolCalls","id":"t","data":{"tool":"Bash","input":{},"status":"complete","duration":3}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		tr := channels.Translator{Session: "s", Called: func(string, string) (channels.Known, error) { return channels.Unknown, nil }}
		events, err := tr.Translate(line)
		if err != nil {
			return
		}
		for i := range events {
			if len(events[i].Data) > 0 && !json.Valid(events[i].Data) {
				t.Errorf("%s is not JSON", events[i].Data)
			}
		}
	})
}
