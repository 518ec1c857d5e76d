package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestRunFlags checks which flags of run can be used together.
func TestRunFlags(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // part of the error; "" for none
	}{
		{"--resume s", ""},
		{"--resume s do", ""},
		{"--session s do", ""},
		{"--copy s do", ""},
		{"--copy s --to-point 0 do", ""},
		{"--overwrite s do", ""},
		{"--overwrite s --from-point 7 do", ""},
		{"", "takes one task"},
		{"do this", "takes one task"},
		{"--session s", "takes one task"},
		{"--copy s", "takes one task, in quotes; to copy without a task: tapedeck copy s"},
		{"--overwrite s", "takes one task, in quotes; to overwrite without a task: tapedeck overwrite s --from-point N"},
		{"--overwrite s --from-point 3", "tapedeck overwrite s --from-point 3"},
		{"--resume s --copy s do", "cannot be used together"},
		{"--session s --overwrite s do", "cannot be used together"},
		{"--to-point 3 do", "--to-point needs --copy"},
		{"--overwrite s --to-point 3 do", "--to-point needs --copy"},
		{"--max-tokens 5 --max-usd 0.5 --max-turns 3 --max-time 30m do", ""},
		{"--max-tokens 0 do", "--max-tokens must be above 0"},
		{"--max-tokens -4 do", "cannot have -4 tokens"},
		{"--max-usd NaN do", "cannot have NaN usd"},
		{"--max-usd 1e300 do", "usd"},
		{"--max-time -3s do", "cannot have -3 seconds"},
		{"--copy s --from-point 3 do", "--from-point needs --overwrite"},
		{"--copy s --to-point -1 do", "the last event to keep, from 0"},
		{"--copy s --to-point x do", "N in the context, or @N"},
		{"--copy s --to-point @-1 do", "N in the context, or @N"},
		{"--copy s --to-point 1.5 do", "N in the context, or @N"},
		{"--copy s --to-point 99999999999999999999 do", "N in the context, or @N"},
		{"--copy s --to-point @1 --instance ins_1 do", "@1 is an offset"},
		{"--copy s --instance ins_1 do", "--instance needs --to-point"},
		{"--overwrite s --from-point 1 --instance ../x do", "must begin with a letter"},
		{"--resume ../s", "must begin with a letter"},
		{"do --resume", "--resume needs SESSION; see"},
		{"do --resume --agent coder", `--resume needs a session id; the session id "--agent"`},
		{"do --session --json", "--session needs a session id"},
		{"do --copy --agent coder", "--copy needs a session id"},
		{"do --overwrite --from-point 3", "--overwrite needs a session id"},
		{"do --agent", "--agent needs a value; see"},
		{"--resume s --agent coder", "--agent cannot be used"},
	} {
		e := &env{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
		var ran bool
		root := newRoot(e)
		root.SetArgs(append([]string{"run"}, strings.Fields(c.args)...))
		run, _, err := root.Find([]string{"run"})
		if err != nil {
			t.Fatal(err)
		}
		run.RunE = func(*cobra.Command, []string) error { ran = true; return nil }
		err = root.Execute()
		var exit *exitError
		switch {
		case c.want == "" && (err != nil || !ran):
			t.Errorf("run %s: %v", c.args, err)
		case c.want != "" && (!errors.As(err, &exit) || exit.code != exitUsage || !strings.Contains(err.Error(), c.want)):
			t.Errorf("run %s: %v, want %q", c.args, err, c.want)
		}
	}
}

// Bad usage prints one sentence, returns exit code 2 and changes nothing.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"rewind s", "--before INVOCATION or --to OFFSET"},
		{"rewind s --to 1 --before inv_1", "either --before"},
		{"rewind s --to -1", "from 0"},
		{"rewind s --to x", "invalid argument"},
		{"undo", "a session and optionally a marker"},
		{"undo s a b", "a session and optionally a marker"},
		{"overwrite s", "the last event to keep"},
		{"overwrite s --from-point -1", "the last event to keep"},
		{"clear s t", "one session id"},
		{"fork s --at -1", "from 0"},
		{"copy s --to-point -1", "the last event to keep, from 0"},
		{"erase s --all", "erase needs --reason"},
		{"erase s --reason x", "either --events"},
		{"erase s --all --events 1 --reason x", "either --events"},
		{"erase s --events 3-1 --reason x", "is not an offset such as 12"},
		{"say s x --when later", "--when takes now, queue, steer, interrupt"},
		{"say s --list --when steer", "--when goes with a text"},
		{"say s --withdraw in_1 --agent bot", "--agent goes with a text"},
		{"say s --move in_1 --thread t", "--thread goes with a text or with --list"},
		{"rename s", "a session and a title"},
		{"resume", "a session and optionally a text"},
		{"create a b", "one session id"},
		{"create ../a", "must begin with a letter"},
		{"delete", "one session id"},
		{"summary s --at -2", "from 0"},
		{"tasks ../s", "must begin with a letter"},
		{"search", "takes a query"},
		{"search x --limit 0", "from 1 to 100"},
		{"search x --to tomorrow", "is not a day such as"},
		{"ls --from yesterday", "is not a day such as"},
		{"show s --all --json", "tapedeck tail s --json"},
		{"serve --allow-origin=", "an origin is written as"},
		{"serve --allow-origin https://a.example,", "an origin is written as"},
		{"serve --allow-origin https://*.example", "has a wildcard"},
		{"serve --allow-origin ftp://a.example", "the scheme http, https"},
		{"ls --limit x", "it is not a whole number; see: tapedeck ls --help"},
		{"ls --limit 99999999999999999999", "the number is out of range; see:"},
		{"replay s --speed fast", "it is not a number; see:"},
		{"replay s", "replay needs a terminal"},
		{"replay s --speed 99", "from 0.5 to 16"},
		{"replay s --speed NaN", "from 0.5 to 16"},
		{"replay s --from -1", "takes an offset, from 0"},
		{"replay s --json", "tapedeck tail s --json"},
	} {
		var out, errs bytes.Buffer
		dir := filepath.Join(t.TempDir(), "data")
		code := Main(t.Context(), append(strings.Fields(c.args), "--data", dir), strings.NewReader(""), &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q %q; want %q", c.args, code, out.String(), errs.String(), c.want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: it created a data folder", c.args)
		}
	}
}

// A point is a sequence number in a context or, as @N, an offset.
func TestPoints(t *testing.T) {
	for _, tt := range []struct {
		args     string
		number   int64
		sequence bool
	}{
		{"--copy s --to-point @41", 41, false},
		{"--copy s --to-point 4", 4, true},
		{"--copy s --to-point 4 --instance ins_1", 4, true},
	} {
		var f runFlags
		c := &cobra.Command{Use: "run"}
		f.register(c)
		if err := c.ParseFlags(strings.Fields(tt.args)); err != nil {
			t.Fatal(err)
		}
		if err := f.check(c, []string{"do"}); err != nil || f.to.number != tt.number || f.to.sequence != tt.sequence {
			t.Errorf("%s: %+v, %v", tt.args, f.to, err)
		}
	}
}
