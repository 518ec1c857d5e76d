package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// TestWordsOfTasks: below the line of a task is the last line of each message of its
// agent, harmless and not wider than the terminal. Others are not heard.
func TestWordsOfTasks(t *testing.T) {
	var out strings.Builder
	tree := newElementTree(terminal.Pen{W: &out, Width: 60})
	send := func(typ, thread, format string, args ...any) {
		e := tapedeck.Event{Type: typ, Thread: thread, Data: json.RawMessage(fmt.Sprintf(format, args...))}
		if known, err := tree.print(&e); err != nil {
			t.Fatal(err)
		} else if known {
			return
		}
		if err := tree.hear(&e); err != nil {
			t.Fatal(err)
		}
	}
	say := func(thread, role string, deltas ...string) {
		send(tapedeck.TextMessageStart, thread, `{"messageId":"m","role":%q}`, role)
		for _, d := range deltas {
			raw, _ := json.Marshal(d)
			send(tapedeck.TextMessageContent, thread, `{"messageId":"m","delta":%s}`, raw)
		}
		send(tapedeck.TextMessageEnd, thread, `{"messageId":"m"}`)
	}
	send(tapedeck.WorkflowEntered, "", `{"element":"T","elementType":"serviceTask","activation":"1","thread":"thread_T"}`)
	out.Reset()
	say("thread_T", "assistant", "First line.\nThe last ", "line.\n\n")
	say("thread_T", "assistant", "\x1b[2J\x1b]0;title\x07 \u202etxt")
	say("thread_T", "assistant", strings.Repeat("ä wide word ", 2000))
	say("thread_T", "assistant", " \n ")
	say("thread_T", "user", "of a user")
	say("thread_other", "assistant", "of another thread")
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 || lines[0] != "    │ The last line." {
		t.Fatalf("got %q", lines)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07\u202e") || !strings.Contains(lines[1], "txt") {
		t.Errorf("got %q", lines[1])
	}
	if n := len([]rune(lines[2])); n > 60 || !strings.HasSuffix(lines[2], "…") {
		t.Errorf("%d columns: %q", n, lines[2])
	}
	send(tapedeck.WorkflowLeft, "", `{"element":"T","activation":"1"}`)
	out.Reset()
	if say("thread_T", "assistant", "after its end"); out.Len() > 0 || len(tree.threads) > 0 {
		t.Errorf("got %q, %v", out.String(), tree.threads)
	}
}
