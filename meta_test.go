package tapedeck

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeta(t *testing.T) {
	want := Meta{Agent: "a", DurationMS: new(int64), Resumable: new(bool), Tools: []string{"x"}, Closed: StatusFailed}
	metadata := want.In(nil)
	raw, err := json.Marshal(metadata)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]Meta{"of JSON": MetaOf(json.RawMessage(raw)), "of members": MetaOf(metadata)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := string(raw); got != `{"tapedeck":{"agent":"a","closed":"failed","durationMs":0,"resumable":false,"tools":["x"]}}` {
		t.Error(got)
	}
}

// TestMetaOfOtherShapes: a member of another shape must not hide the others.
func TestMetaOfOtherShapes(t *testing.T) {
	got := MetaOf(json.RawMessage(`{"other":1,"tapedeck":{"agent":5,"context":"c","tools":"x","durationMs":1.5,"error":true,"more":{}}}`))
	if diff := cmp.Diff(Meta{Context: "c", Error: true}, got); diff != "" {
		t.Error(diff)
	}
	for _, raw := range []string{"", "null", "[]", "{", `{"tapedeck":null}`, `{"tapedeck":[]}`, `{"tapedeck":"x"}`, `{"tapedeck":{`} {
		if diff := cmp.Diff(Meta{}, MetaOf(json.RawMessage(raw))); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}

// TestMetaIn: In keeps what others put into the metadata, and replaces its own
// members, also those that it does not set.
func TestMetaIn(t *testing.T) {
	for old, want := range map[string]string{
		`null`:                    `{"tapedeck":{"chunk":true}}`,
		`{}`:                      `{"tapedeck":{"chunk":true}}`,
		`{"other":{"owner":"o"}}`: `{"other":{"owner":"o"},"tapedeck":{"chunk":true}}`,
		`{"tapedeck":{"x":1.0,"owner":"o","a":[],"agent":5}}`: `{"tapedeck":{"a":[],"chunk":true,"x":1.0}}`,
		`{"tapedeck":{"chunk":false}}`:                        `{"tapedeck":{"chunk":true}}`,
		`{"tapedeck":null}`:                                   `{"tapedeck":{"chunk":true}}`,
		`{"tapedeck":[1]}`:                                    `{"tapedeck":{"chunk":true}}`,
	} {
		var metadata Members
		if err := json.Unmarshal([]byte(old), &metadata); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(Meta{Chunk: true}.In(metadata))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", old, got, err, want)
		}
		if left, err := json.Marshal(metadata); err != nil || string(left) != old {
			t.Errorf("%s: it is %s now, %v", old, left, err)
		}
	}
}

func TestDocHasMembersOfMeta(t *testing.T) {
	doc, err := os.ReadFile("docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "\n### Metadata of Tapedeck\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, name := range metaNames {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/events.md does not have the member %s", name)
		}
	}
}
