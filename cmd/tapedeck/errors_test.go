package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestPrintError: an error has one form, and its text, which may come from a server
// or an agent, cannot control the terminal.
func TestPrintError(t *testing.T) {
	known := tapedeck.Errorf(tapedeck.Conflict, "it is\x1b[2J closed").WithHint("open\x1b it")
	for _, c := range []struct {
		err  error
		json bool
		want string
	}{
		{known, false, "tapedeck: it is\uFFFD[2J closed\n  open\uFFFD it\n"},
		{known, true, `{"error":{"kind":"conflict","message":"it is\u001b[2J closed","hint":"open\u001b it"}}` + "\n"},
		{errors.New("odd"), false, "tapedeck: odd\n"},
		{tapedeck.Errorf(tapedeck.Conflict, "2 runs are open").WithHint("name one of them: inv_1, run_2"), false, "tapedeck: 2 runs are open\n  name one of them with --invocation: inv_1, run_2\n"},
		{tapedeck.Errorf(tapedeck.Conflict, "busy").WithHint("wait; with when=queue it waits"), false, "tapedeck: busy\n  wait; with `tapedeck say --when queue` it waits\n"},
		{tapedeck.Errorf(tapedeck.Forbidden, "no").WithHint("answer it with POST /sessions/{id}/permissions/{permission}"), false, "tapedeck: no\n  answer it with tapedeck answer\n"},
		{errors.New("odd"), true, `{"error":{"message":"odd"}}` + "\n"},
	} {
		var stderr strings.Builder
		e := &env{stderr: &stderr, json: c.json}
		if e.printError(c.err); stderr.String() != c.want {
			t.Errorf("got %q, want %q", stderr.String(), c.want)
		}
	}
}
