// Package procgroup runs the programs of agents and ends them for certain: the
// program, and every process that it has started, also in groups and sessions of
// their own.
//
// Between us and a program stands a keeper: this binary, executed again. The
// keeper starts the program only when it is released, so that its identity can be
// stored first. All processes that lose their parent become children of the
// keeper (Linux), and the keeper kills every one of them when we say so, when the
// program has ended, and when we are gone.
package procgroup

import (
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck/payload"
)

// Mark is the variable in the environment of every process of a run. Its value
// is random; by it a process is found whose keeper was killed.
const Mark = "TAPEDECK_RUN"

// OwnPrefix begins the names of our own variables. No program inherits them: they
// may say where the server is.
const OwnPrefix = "TAPEDECK_"

// A Spec says what to start.
type Spec struct {
	Path  string   // of the program; a name without a separator is looked up in our own PATH
	Args  []string // without the program
	Dir   string   // where it works; "" for our own
	Env   []string // all of its environment, NAME=value; without those of [OwnPrefix]
	Stdin bool     // it is written to; otherwise its input ends at once
	Tail  int      // bytes of standard error to keep, the last ones; 0 for 16 KiB
}

// A Process is a program that waits to be released, runs, or has ended. Call
// [Process.Stop] in the end, however the program ended.
type Process struct {
	Stdin  io.WriteCloser // nil if it was not asked for
	Stdout io.Reader      // ends when all who write to it are gone, or by [Process.Stop]

	job   job
	mark  string
	pipes []*os.File // our ends
	side             // what differs between systems

	stderr *tail
	heard  chan struct{} // closed when its standard error has ended
	done   chan struct{} // closed when the program itself has ended
	gone   chan struct{} // closed when nobody of it is left
	exit   exit          // set before done is closed

	stopping sync.Once
	stopped  chan struct{} // closed when gone is, and the pipes are closed
}

// A job is what is executed.
type job struct {
	Path string
	Args []string // with the name of the program
	Env  []string
}

// An exit says how a program ended.
type exit struct {
	text    string
	success bool
}

// Start prepares a program. It begins to work when it is released.
func Start(s Spec) (*Process, error) {
	path, err := look(s.Path)
	if err != nil {
		return nil, err
	}
	p := &Process{
		mark: rand.Text(), stderr: newTail(s.Tail),
		heard: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}), stopped: make(chan struct{}),
	}
	env := append(slices.DeleteFunc(slices.Clone(s.Env), isOwn), Mark+"="+p.mark)
	env = (&exec.Cmd{Env: env}).Environ() // of two of a name the last counts
	p.job = job{Path: path, Args: append([]string{s.Path}, s.Args...), Env: env}
	cmd := &exec.Cmd{Dir: s.Dir}
	theirs, err := p.connect(cmd, s.Stdin)
	if err == nil {
		err = p.launch(cmd)
	}
	closeAll(theirs)
	if err != nil {
		closeAll(p.pipes)
		return nil, err
	}
	go p.listen(p.pipes[1])
	return p, nil
}

func isOwn(pair string) bool { return strings.HasPrefix(pair, OwnPrefix) }

// look returns the path of a program. One relative to its folder is found, or
// not, when it is executed.
func look(path string) (string, error) {
	if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
		return path, nil
	}
	return exec.LookPath(path)
}

// connect makes the pipes and returns the program's ends of them. They are files
// and not the pipes of os/exec, whose Wait waits for everybody who writes.
func (p *Process) connect(cmd *exec.Cmd, stdin bool) (theirs []*os.File, err error) {
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		p.pipes, theirs = append(p.pipes, r), append(theirs, w)
	}
	p.Stdout, cmd.Stdout, cmd.Stderr = p.pipes[0], theirs[0], theirs[1]
	if !stdin {
		return theirs, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.pipes, theirs = append(p.pipes, w), append(theirs, r)
	p.Stdin, cmd.Stdin = w, r
	return theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func (p *Process) listen(stderr *os.File) {
	defer close(p.heard)
	_, _ = io.Copy(p.stderr, stderr)
}

// Started returns what identifies the process, so that a later server can end it
// ([KillLeftover]). Store it before the program is released.
func (p *Process) Started() payload.AgentStarted {
	started, host := Identity(p.PID())
	return payload.AgentStarted{PID: p.PID(), Started: started, Host: host, Mark: p.mark}
}

// Done is closed when the program itself has ended. Others that it started may
// still run, for a moment.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the program ended, such as "exit status 1"; "" while it runs.
func (p *Process) Exit() string {
	select {
	case <-p.done:
		return p.exit.text
	default:
		return ""
	}
}

// Success reports whether the program has ended with status 0. Some do so when
// they did not succeed.
func (p *Process) Success() bool { return p.Exit() != "" && p.exit.success }

// Stderr returns the last of what the program wrote to its standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// A tail keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	b     []byte
}

// defaultTail is how many bytes of its errors are kept of a program.
const defaultTail = 16 << 10

func newTail(limit int) *tail {
	if limit <= 0 {
		limit = defaultTail
	}
	return &tail{limit: limit}
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	b = b[max(0, len(b)-t.limit):]
	if over := len(t.b) + len(b) - t.limit; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	t.b = append(t.b, b...)
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// How long a program that is told to stop gets.
const (
	CancelWait = 1250 * time.Millisecond // to wind down after a cancel, in its own words
	TermWait   = 500 * time.Millisecond  // after SIGTERM
)
