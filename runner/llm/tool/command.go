package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/proposal"
)

// drain is how long run waits for the end of the output after a command has ended. A
// process that the command left in the background can keep the output open.
const drain = 500 * time.Millisecond

// always has the names of the variables that every program gets.
var always = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP"}

func (f *Folder) command() Tool {
	type args struct {
		Command string  `json:"command"`
		Timeout Seconds `json:"timeout"`
	}
	t := build("run_command", fmt.Sprintf("Run a shell command in the folder and wait for its end. The command has no input. "+
		"The time limit is %d seconds, unless you set timeout. Processes that it leaves in the background are killed.", f.options.Timeout),
		`{"command":{"type":"string"},"timeout":{"type":"integer","description":"in seconds","minimum":1}}`, []string{"command"},
		func(ctx context.Context, c Call, a args) Result {
			limit := f.options.Timeout
			if a.Timeout > 0 {
				limit = min(a.Timeout, f.options.Longest)
			}
			return f.run(ctx, c, a.Command, time.Duration(limit)*time.Second)
		})
	t.Propose = propose(func(a args) proposal.Draft {
		d := proposal.Draft{Command: a.Command, Folder: f.path}
		if a.Timeout > 0 {
			d.Arguments = fmt.Appendf(nil, `{"timeout":%d}`, min(a.Timeout, f.options.Longest))
		}
		return d
	})
	t.Scope = scope(func(a args) (string, string) { return a.Command, "this exact command" })
	return t
}

// errTooLong is the reason why a command was killed after its time limit.
var errTooLong = errors.New("it took too long")

// run runs a command. Afterwards it kills every process that the command started, also
// after an error or a cancel.
func (f *Folder) run(ctx context.Context, c Call, command string, limit time.Duration) Result {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	spec, err := f.options.Sandbox.Confine(shell(command, f.path, Environment(f.options.Env)))
	var p *procgroup.Process
	if err == nil {
		p, err = procgroup.Start(spec)
	}
	if err != nil {
		return Failed("The command cannot be started: %s.", procgroup.Reason(err))
	}
	if err := p.Begin(c.Started); err != nil {
		p.Stop(procgroup.Ladder{})
		return Failed("The command cannot be started: %s.", procgroup.Reason(err))
	}
	var out output
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&out, p.Stdout) // ends when no process has the output open any more, or by Stop
	}()
	select {
	case <-p.Done():
		quiet := time.NewTimer(drain)
		defer quiet.Stop()
		select {
		case <-copied:
		case <-quiet.C:
		}
	case <-ctx.Done():
	}
	failed := context.Cause(ctx)
	p.Stop(procgroup.Ladder{})
	<-copied
	return outcome(p, out.String()+p.Stderr(), failed, limit)
}

// outcome returns the result of a command. killed is the reason why it was killed; nil if
// it was not.
func outcome(p *procgroup.Process, text string, killed error, limit time.Duration) Result {
	switch {
	case killed == errTooLong: //nolint:errorlint // context.Cause returns it unwrapped
		return Failed("%s[killed: it took longer than %v]", text, limit)
	case killed != nil:
		return Failed("%s[killed: the run was cancelled]", text)
	case !p.Success():
		return Failed("%s[%s]", text, p.Exit())
	case text == "":
		text = "[no output]"
	}
	return Result{Text: text}
}

// shell returns the shell process that runs a command. Except on Windows, the shell
// redirects standard error to the output, so that both keep their order.
func shell(command, dir string, env []string) procgroup.Spec {
	s := procgroup.Spec{Path: "/bin/sh", Args: []string{"-c", "exec 2>&1\n" + command}, Dir: dir, Env: env, Tail: outputEnd}
	if runtime.GOOS == "windows" {
		s.Path, s.Args = "cmd", []string{"/C", command}
	}
	return s
}

// Environment returns the variables of a program. It takes from this process the
// variables that almost every program needs and those that list names. It adds the pairs
// NAME=value of list.
func Environment(list []string) []string {
	env := []string{"TERM=dumb", "PAGER=cat", "GIT_TERMINAL_PROMPT=0"}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(always, name) || slices.Contains(list, name) {
			env = append(env, v)
		}
	}
	for _, v := range list {
		if strings.Contains(v, "=") {
			env = append(env, v) // the last pair of a name counts
		}
	}
	return env
}

// outputEnd is how many bytes of the beginning, and of the end, of an output are kept. The
// important lines are usually there.
const outputEnd = 32 << 10

// output keeps the beginning and the end of the bytes that were written to it.
type output struct {
	head, tail []byte
	lost       int64
}

func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	room := min(outputEnd-len(o.head), len(p))
	o.head, p = append(o.head, p[:room]...), p[room:]
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - outputEnd; over > outputEnd { // copies only now and then, not at each write
		o.lost += int64(over)
		o.tail = slices.Clone(o.tail[over:])
	}
	return n, nil
}

// String returns the kept output, with a newline at its end.
func (o *output) String() string {
	tail, lost := o.tail, o.lost
	if over := len(tail) - outputEnd; over > 0 {
		tail, lost = tail[over:], lost+int64(over)
	}
	b := bytes.NewBuffer(slices.Clone(o.head))
	if lost > 0 {
		fmt.Fprintf(b, "\n[… %d bytes left out …]\n", lost)
	}
	b.Write(tail)
	text := strings.ToValidUTF8(b.String(), "\uFFFD")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
