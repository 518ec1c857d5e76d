package process

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCovers(t *testing.T) {
	for raw, want := range map[string]string{
		`[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"echo:*"},{"toolName":"Read"}],"behavior":"allow","destination":"localSettings"}]`: "Bash(echo:*), every use of Read in this folder, for you",
		`[{"type":"setMode","mode":"acceptEdits","destination":"session"},{"type":"addDirectories","directories":["/a"],"destination":"of tomorrow"}]`:    "the mode acceptEdits in this conversation; access to /a",
		`[{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"deny"}]`:                                                                           `{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"deny"}`,
		`[{"type":"of tomorrow","x":1}]`: `{"type":"of tomorrow","x":1}`,
		`"all"`:                          `"all"`,
	} {
		if got := covers(json.RawMessage(raw)); got != want {
			t.Errorf("%s covers %q, want %q", raw, got, want)
		}
	}
	long, _ := json.Marshal([]string{strings.Repeat("x", 9000)})
	if got := covers(long); len(got) > maxCovers+100 || !strings.Contains(got, "bytes are left out here") {
		t.Errorf("it has %d bytes", len(got))
	}
}
