// Package procgroup runs programs in process groups of their own and ends them
// for certain: the program, and whatever it has started in its group.
//
// Many programs are only the front of others. The signal that ends the front
// leaves the others running, so no signal here goes to one process alone.
package procgroup

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// defaultTail is how many bytes of its errors are kept of a program.
const defaultTail = 16 << 10

// A Spec says what to start.
type Spec struct {
	Path  string   // of the program; a name without a separator is looked up in our own PATH
	Args  []string // without the program
	Dir   string   // where it works; "" for our own
	Env   []string // all of its environment, NAME=value; nil for an empty one
	Stdin bool     // it is written to; otherwise its input ends at once
	Tail  int      // bytes of standard error that are kept, the last ones; 0 for 16 KiB
}

// A Process is a program that was started and leads a process group. [Stop] must
// be called in the end, however the program ended.
type Process struct {
	Stdin  io.WriteCloser // nil if it was not asked for
	Stdout io.Reader      // ends when all who write to it are gone, or by [Process.Stop]

	cmd    *exec.Cmd
	pipes  []*os.File // our ends
	stderr *tail
	heard  chan struct{} // closed when its standard error has ended
	done   chan struct{} // closed when the program itself has ended

	stopping sync.Once
	stopped  chan struct{} // closed when the group is gone
}

// Start starts a program.
func Start(s Spec) (*Process, error) {
	p := &Process{
		cmd:    exec.Command(s.Path, s.Args...), //nolint:noctx // the whole group is ended, by Stop; a context would kill its leader alone
		stderr: newTail(s.Tail),
		heard:  make(chan struct{}), done: make(chan struct{}), stopped: make(chan struct{}),
	}
	p.cmd.Dir, p.cmd.Env = s.Dir, s.Env
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would be our own
	}
	lead(p.cmd)
	theirs, err := p.connect(s.Stdin)
	if err == nil {
		err = p.cmd.Start()
	}
	closeAll(theirs)
	if err != nil {
		closeAll(p.pipes)
		return nil, err
	}
	go p.listen(p.pipes[1])
	go func() {
		_ = p.cmd.Wait() // how it ended is in the ProcessState
		close(p.done)
	}()
	return p, nil
}

// connect makes the pipes and returns the program's ends of them. They are files
// and not the pipes of os/exec, whose Wait waits for everybody who writes.
func (p *Process) connect(stdin bool) (theirs []*os.File, err error) {
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		p.pipes, theirs = append(p.pipes, r), append(theirs, w)
	}
	p.Stdout, p.cmd.Stdout, p.cmd.Stderr = p.pipes[0], theirs[0], theirs[1]
	if !stdin {
		return theirs, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.pipes, theirs = append(p.pipes, w), append(theirs, r)
	p.Stdin, p.cmd.Stdin = w, r
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

// PID returns the id of the program, which is that of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program itself has ended. Others of its group may
// still run.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the program ended, such as "exit status 1"; "" while it runs.
func (p *Process) Exit() string {
	select {
	case <-p.done:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// Success reports whether the program has ended with status 0. Some do so when
// they did not succeed.
func (p *Process) Success() bool { return p.Exit() != "" && p.cmd.ProcessState.Success() }

// Stderr returns the last of what the program wrote to its standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// A Ladder says how long a program gets at each step of its end before the next
// follows. The zero value skips every wait.
type Ladder struct {
	Soft func()        // asks the program to stop, in its own words; nil for nothing
	Wait time.Duration // for what Soft asks
	EOF  time.Duration // after the end of its input
	Term time.Duration // after SIGTERM to the group; then comes SIGKILL
}

// Stop ends the group and returns when nobody of it is left, or when nothing can
// be done about those who are. It is safe to call it more than once: the ladder
// of the first call counts, and all wait for it.
//
// All steps are skipped that find nobody left.
func (p *Process) Stop(l Ladder) {
	p.stopping.Do(func() {
		p.descend(l)
		closeAll(p.pipes) // whoever has left the group may still hold the other ends
		<-p.heard
		close(p.stopped)
	})
	<-p.stopped
}

func (p *Process) descend(l Ladder) {
	if l.Soft != nil && !p.gone(0) {
		l.Soft()
		if p.gone(l.Wait) {
			return
		}
	}
	if p.Stdin != nil {
		_ = p.Stdin.Close()
	}
	if p.gone(l.EOF) {
		return
	}
	terminate(p.PID())
	if p.gone(l.Term) {
		return
	}
	kill(p.PID())
	p.gone(afterKill)
}

// afterKill is how long the system gets to clear away a group that was killed: a
// process in the middle of a disk operation does not go at once.
const afterKill = 10 * time.Second

// gone waits for the end of the program and of its group. The system tells only
// of the program; for the others it must be asked again and again.
func (p *Process) gone(within time.Duration) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-p.done:
	default:
		select {
		case <-p.done:
		case <-limit.C:
			return false
		}
	}
	for pause := time.Millisecond; alive(p.PID()); pause = min(2*pause, 50*time.Millisecond) {
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-limit.C:
			next.Stop()
			return !alive(p.PID())
		}
	}
	return true
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	b     []byte
}

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
