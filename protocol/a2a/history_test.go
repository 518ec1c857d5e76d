package a2a_test

import (
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// withConfig adds a configuration to the parameters of a message.
func withConfig(params, config string) string {
	return strings.Replace(params, `{"message"`, `{"configuration":`+config+`,"message"`, 1)
}

// A page replaces its messages with the history of a task, so in version 0.3 the task of a
// stream that begins a run or continues one has none, unless the client says how long.
func TestTheFirstTaskHasNoHistory(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		first := func(a *answer) string { return string(a.frames[0].Data) }
		for what, tt := range map[string]struct {
			first string
			want  bool
		}{
			"a message":            {first(w.call03("message/stream", message03("m1", "say One", ""))), false},
			"sent again":           {first(w.call03("message/stream", message03("m1", "say One", ""))), true},
			"with a historyLength": {first(w.call03("message/stream", withConfig(message03("m2", "say Two", ""), `{"historyLength":1}`))), true},
			"of version 1.0":       {first(w.call("SendStreamingMessage", message("m3", "say Three", ""))), true},
			"a question":           {first(w.call03("message/stream", message03("m4", "ask May I?", ""))), false},
			"its answer":           {first(w.call03("message/stream", message03("m5", "yes", `"taskId":"c"`))), false},
		} {
			if got := strings.Contains(tt.first, `"history"`); got != tt.want {
				t.Errorf("%s: a history is %v, want %v: %s", what, got, tt.want, tt.first)
			}
			if strings.Contains(tt.first, "say One") && what == "with a historyLength" {
				t.Errorf("the history is longer than it was asked for: %s", tt.first)
			}
		}
	})
}
