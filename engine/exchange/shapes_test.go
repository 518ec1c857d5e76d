package exchange

import (
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestShapesOfInput detects the format of inputs, and reads them.
func TestShapesOfInput(t *testing.T) {
	const call = `{"type":"assistant","uuid":"a","timestamp":"2025-01-01T00:00:00Z","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}}` + "\n"
	for name, tt := range map[string]struct {
		input string
		want  string // a type of event that must be there
		has   string // and a part of its data
	}{
		"array of events":      {`[{"type":"RUN_STARTED","threadId":"t","runId":"r"},{"type":"RUN_FINISHED","threadId":"t","runId":"r"}]`, "RUN_FINISHED", `"r"`},
		"fixture with events":  {`{"name":"x","events":[{"type":"RUN_STARTED","threadId":"t","runId":"r"},{"type":"RUN_FINISHED","threadId":"t","runId":"r"}]}`, "RUN_FINISHED", `"r"`},
		"array of frames":      {`[{"event":"m","data":{"type":"RUN_STARTED","threadId":"t","runId":"r"}},{"data":{"type":"RUN_FINISHED","threadId":"t","runId":"r"}}]`, "RUN_FINISHED", `"r"`},
		"transcript":           {"\n: hello\n\nevent: m\nid: 1\ndata: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\ndata: {\"type\":\"RUN_FINISHED\",\ndata: \"threadId\":\"t\",\"runId\":\"r\"}\n\ndata: [DONE]\n", "RUN_FINISHED", `"r"`},
		"result line":          {call + `{"type":"tool_result","uuid":"b","tool_use_id":"t1","content":"the file"}`, "TOOL_CALL_RESULT", "the file"},
		"result in a message":  {call + `{"type":"tool_result","uuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"the file"}]}}`, "TOOL_CALL_RESULT", "the file"},
		"failed result":        {call + `{"type":"tool_result","uuid":"b","tool_use_id":"t1","is_error":true,"content":"no file"}`, "TOOL_CALL_RESULT", "no file"},
		"call and result line": {`{"type":"tool_use","uuid":"a","id":"t1","name":"Read","input":{"p":1}}` + "\n" + `{"type":"tool_result","uuid":"b","tool_use_id":"t1","content":"the file"}`, "TOOL_CALL_RESULT", "the file"},
	} {
		t.Run(name, func(t *testing.T) {
			sessions, d := mustRead(t, Auto, tt.input)
			if skipped := d.Skipped(); len(skipped) > 0 {
				t.Errorf("left out: %+v", skipped)
			}
			if len(sessions) != 1 || !has(sessions[0], tt.want, tt.has) {
				t.Errorf("no %s with %s in %+v", tt.want, tt.has, sessions)
			}
		})
	}
}

func has(events []tapedeck.Event, typ, part string) bool {
	for _, e := range events {
		if e.Type == typ && strings.Contains(string(e.Data), part) {
			return true
		}
	}
	return false
}
