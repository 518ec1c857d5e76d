// Package procgroup runs the programs of agents and ends them reliably: the program,
// and every process that it started, also in process groups and sessions of their
// own.
//
// Each program has a keeper: this binary, executed again, between the server and the
// program. The keeper starts the program only when it is released, so that the
// keeper's identity can be stored first. On Linux, a process below the keeper that
// loses its parent becomes a child of the keeper. The keeper kills all of them when
// the server orders it, when the program has ended, and when the server has died.
package procgroup

import (
	"cmp"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck/payload"
)

// Mark is an environment variable that every process of a run inherits. Its value is
// random. It finds the processes of a keeper that was killed.
const Mark = "TAPEDECK_RUN"

// OwnPrefix is the prefix of Tapedeck's own variables. No program inherits them,
// because they can tell where the server is. [Mark] is the exception.
const OwnPrefix = "TAPEDECK_"

// A Spec describes the program to start.
type Spec struct {
	Path  string   // the program; a name without a separator is looked up in the PATH of this process, and a relative path begins at Dir
	Args  []string // the arguments, without the name of the program
	Dir   string   // the working directory; "" for that of this process
	Env   []string // the whole environment, NAME=value; names with [OwnPrefix] are removed
	Stdin bool     // whether the program gets a pipe as its input; otherwise its input is empty
	Tail  int      // how many of the last bytes of standard error to keep; 0 for 16 KiB

	Limits Limits

	// Apart says that the program is a sandbox, which runs the agent in namespaces of its
	// own. It gets no controlling terminal. Signals reach only the processes in the
	// sandbox, because the sandbox would end with them, and kill the agent.
	Apart bool
}

// A Process is a program that waits for its release, runs, or has ended. Always call
// [Process.Stop] at the end, even if the program has ended by itself.
type Process struct {
	Stdin  io.WriteCloser // nil without [Spec.Stdin]
	Stdout io.Reader      // ends when no process has it open any more, or after [Process.Stop]

	job      job
	mark     string
	pipes    []*os.File // this process's ends
	platform            // depends on the operating system

	stderr      *tail
	stderrEnded chan struct{} // closed when standard error has ended
	done        chan struct{} // closed when the program itself has ended
	gone        chan struct{} // closed when the program and all its descendants have ended
	exit        exit          // set before done is closed

	limits  Limits
	breach  breach
	written atomic.Int64 // bytes of output so far

	stopping sync.Once
	stopped  chan struct{} // closed when Stop has finished
}

// A job says which program the keeper executes.
type job struct {
	Path string
	Args []string // with the name of the program first
	Env  []string

	Limits Limits
	Apart  bool
}

// An exit says how a program ended.
type exit struct {
	text    string
	success bool
}

// Start prepares a program. The program begins when it is released. On Windows it
// begins at once.
func Start(s Spec) (*Process, error) {
	path, err := find(s.Path, s.Dir)
	if err != nil {
		return nil, err
	}
	p := &Process{
		limits: s.Limits,
		mark:   rand.Text(), stderr: newTail(s.Tail),
		stderrEnded: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}), stopped: make(chan struct{}),
	}
	env := append(slices.DeleteFunc(slices.Clone(s.Env), isOwn), Mark+"="+p.mark)
	env = (&exec.Cmd{Env: env}).Environ() // the last pair of a name counts
	p.job = job{Path: path, Args: append([]string{s.Path}, s.Args...), Env: env, Limits: s.Limits, Apart: s.Apart}
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
	go p.listen(gauge{p.pipes[1], p})
	return p, nil
}

func isOwn(pair string) bool { return strings.HasPrefix(pair, OwnPrefix) }

// connect makes the pipes and returns the program's ends of them. They are files,
// because with the pipes of os/exec Wait would wait for every process that keeps one
// open.
func (p *Process) connect(cmd *exec.Cmd, stdin bool) (theirs []*os.File, err error) {
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		p.pipes, theirs = append(p.pipes, r), append(theirs, w)
	}
	p.Stdout, cmd.Stdout, cmd.Stderr = gauge{p.pipes[0], p}, theirs[0], theirs[1]
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

func (p *Process) listen(stderr io.Reader) {
	defer close(p.stderrEnded)
	_, _ = io.Copy(p.stderr, stderr)
}

// Started returns the identity of the process. Store it before you release the
// program, so that a later server can end the process with [KillLeftover].
func (p *Process) Started() payload.AgentStarted {
	started, host := Identity(p.PID())
	return payload.AgentStarted{PID: p.PID(), Started: started, Host: host, Mark: p.mark}
}

// Done returns a channel that is closed when the program itself has ended. Processes
// that it started can run for a moment longer.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns how the program ended, such as "exit status 1", or which of its limits it
// exceeded; "" while it runs.
func (p *Process) Exit() string {
	select {
	case <-p.done:
		return cmp.Or(p.breach.String(), p.exit.text)
	default:
		return ""
	}
}

// Success reports whether the program has ended with status 0. Some programs exit with
// 0 although they failed.
func (p *Process) Success() bool { return p.Exit() != "" && p.exit.success && p.breach.String() == "" }

// Stderr returns the last bytes of the program's standard error that have arrived so far;
// see [Spec.Tail]. After [Process.Stop] all of them have arrived.
func (p *Process) Stderr() string { return p.stderr.String() }

// LastWords returns what [Process.Stderr] returns. If the program has ended, it first waits
// until standard error is read to its end, but not longer than limit: a process that the
// program started can keep it open.
func (p *Process) LastWords(limit time.Duration) string {
	if p.Exit() != "" {
		await(p.stderrEnded, limit)
	}
	return p.Stderr()
}

// A tail keeps the last bytes that were written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	b     []byte
}

// defaultTail is how many bytes of standard error are kept by default.
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

// Time limits for a program that must stop.
const (
	CancelWait = 1250 * time.Millisecond // after the cancel message of its own protocol, or SIGINT
	TermWait   = 500 * time.Millisecond  // after SIGTERM
)
