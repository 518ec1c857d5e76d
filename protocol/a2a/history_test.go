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

// A page of kagent replaces its messages with the history of a task, and takes that for the
// end of the turn. So in a stream that begins a turn or continues one the whole task comes at
// the end, and only there, unless the client says how long a history it wants.
func TestAPageGetsTheHistoryAtTheEnd(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		page := func(params string) *answer {
			return w.post("/a2a/default/bot", `{"jsonrpc":"2.0","id":1,"method":"message/stream","params":`+params+`}`)
		}
		for _, tt := range []struct {
			what  string
			a     *answer
			tasks string // "+" for each with a history, otherwise "-"
		}{
			{"a message", page(message03("m1", "say One\ntool Read", "")), "-+"},
			{"sent again", page(message03("m1", "say One\ntool Read", "")), "+"},
			{"with a historyLength", page(withConfig(message03("m2", "say Two", ""), `{"historyLength":1}`)), "+"},
			{"a client that is no page", w.call03("message/stream", message03("m3", "say Three", "")), "+"},
			{"a question", page(message03("m4", "ask May I?", "")), "-"},
			{"its answer", page(message03("m5", "yes", `"taskId":"c"`)), "-+"},
			{"a failure", page(message03("m6", "fail with this", "")), "-"},
			{"a refused rewind", page(rewindTo("r", "inv_none")), "-"},
		} {
			got := ""
			for _, f := range tt.a.frames {
				if d := string(f.Data); strings.Contains(d, `"kind":"task"`) {
					got += map[bool]string{true: "+", false: "-"}[strings.Contains(d, `"history"`)]
				}
			}
			last := string(tt.a.frames[len(tt.a.frames)-1].Data)
			if got != tt.tasks || !strings.Contains(last, `"kind":"status-update"`) || !strings.Contains(last, `"final":true`) {
				t.Errorf("%s: the tasks are %s, want %s, and the last event is %s", tt.what, got, tt.tasks, last)
			}
			if before := len(tt.a.frames) - 2; strings.HasSuffix(tt.tasks, "-+") {
				task, now := tt.a.taskIn(string(tt.a.frames[before].Data)), w.saved()[0]
				if task.Status.State != "completed" || task.words() != now.words()[:len(task.words())] {
					t.Errorf("%s: at the end the task is %s", tt.what, task.words())
				}
			}
			if strings.Contains(tt.what, "Length") && strings.Contains(string(tt.a.frames[0].Data), "say One") {
				t.Errorf("the history is longer than it was asked for: %s", tt.a.Body)
			}
		}
	})
}
