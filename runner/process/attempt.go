package process

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonrpc"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/payload"
)

// An attempt is one process. The goroutine of the run owns the stream. Other
// goroutines read lines, write messages and wait for people, and talk to it over the
// channels. The reader waits until the previous line was taken, so a program that
// writes too fast is held back.
type attempt struct {
	runner  *Runner
	ctx     context.Context // the context of the run; done when the agent must stop
	process *procgroup.Process
	dir     string // the working directory of the program
	stream  *stream
	lines   chan []byte // closed when there are no more
	tooLong error       // set before lines is closed, if a line was too long
	answers chan answer
	out     chan []byte
	sent    chan struct{}   // closed when the program has got the newest message, or does not get it any more; nil before the first one
	life    context.Context // until the attempt ends
	finish  context.CancelFunc
	others  sync.WaitGroup
	failed  error           // the reason why listen stopped before the output ended; nil if it did not
	steered <-chan struct{} // receives when users have sent something; nil if the program takes nothing
}

// attempt runs the program once. The stream is nil if the program was not started.
func (r *Runner) attempt(ctx context.Context, in tapedeck.Invocation, n *narrate.Narrator, command []string, task, session string) (*stream, error) {
	dir, err := filepath.Abs(cmp.Or(in.Folder, r.options.Folder, "."))
	if err != nil {
		return nil, err
	}
	args, err := r.arguments(command, task, session, dir)
	if err != nil {
		return nil, err
	}
	talks := r.dialect.greet != nil
	spec, err := r.options.Sandbox.Confine(procgroup.Spec{Path: command[0], Args: args, Dir: dir, Env: r.options.Env, Stdin: talks})
	if err != nil {
		return nil, err
	}
	p, err := procgroup.Start(spec)
	if err != nil {
		return nil, procgroup.Failed(command[0], err)
	}
	a := &attempt{runner: r, ctx: ctx, process: p, dir: dir, lines: make(chan []byte), answers: make(chan answer), out: make(chan []byte)}
	a.life, a.finish = context.WithCancel(context.WithoutCancel(ctx))
	a.stream = newStream(in, n, a)
	if r.steers(command) {
		a.steered = in.Steered
	}
	defer a.end()
	if err := p.Begin(func(d payload.AgentStarted) error { return n.Process(ctx, &in, d) }); err != nil {
		if ctx.Err() != nil || n.Over() {
			return a.stream, nil
		}
		return nil, procgroup.Failed(command[0], err)
	}
	a.others.Go(a.read)
	if talks {
		a.others.Go(a.write)
		a.send(r.dialect.greet(task))
	}
	a.listen()
	a.stream.flushAll()
	return a.stream, a.outcome()
}

func (a *attempt) read() {
	defer close(a.lines)
	lines := jsonrpc.NewLines(a.process.Stdout, 0)
	for {
		line, err := lines.Next()
		if tapedeck.KindOf(err) == tapedeck.TooLarge {
			a.tooLong = err
		}
		if err != nil {
			return
		}
		select {
		case a.lines <- append([]byte(nil), line...):
		case <-a.life.Done():
			return
		}
	}
}

func (a *attempt) write() {
	for {
		select {
		case b := <-a.out:
			if _, err := a.process.Stdin.Write(append(b, '\n')); err != nil {
				return // the program has ended, or is about to
			}
		case <-a.life.Done():
			return
		}
	}
}

// send writes a message to the program after the earlier ones, in a goroutine of its own
// because the program may not read its input.
func (a *attempt) send(b []byte) {
	before, done := a.sent, make(chan struct{})
	a.sent = done
	a.others.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		select {
		case a.out <- b:
		case <-a.life.Done():
		}
	})
}

// afterDeath is how long the output of a dead process may be silent before the run
// stops reading it. Other processes of its group may keep the output open.
const afterDeath = 500 * time.Millisecond

// listen interprets the output of the program. It returns when the output ends, when
// the program is silent after it should have ended, or when the program runs for too
// long after a cancel.
func (a *attempt) listen() {
	cancelled, dead, closed := a.ctx.Done(), a.process.Done(), false
	silence := time.Duration(0) // the time that it may be silent; 0 for no limit
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	late.Stop()
	for !a.stream.n.Over() && a.failed == nil {
		select {
		case line, ok := <-a.lines:
			if !ok {
				a.failed = a.tooLong
				return
			}
			a.stream.line(line)
		case w := <-a.answers:
			a.send(w.message)
		case <-a.steered:
			a.steer()
		case <-cancelled:
			cancelled, a.steered = nil, nil
			a.interrupt()
			late.Reset(min(a.runner.options.Grace, procgroup.CancelWait))
		case <-dead:
			dead, silence = nil, afterDeath
		case <-late.C:
			return
		}
		if a.stream.ended && a.steered != nil && len(a.stream.unread) == 0 {
			a.steer() // what was sent last does not wait for another run
		}
		switch {
		case a.waits(): // it reads the message at once
			silence = a.runner.options.Grace
		case a.stream.ended && !closed: // the end of its input lets the program exit
			closed, silence, a.steered = true, a.runner.options.Grace, nil
			a.closeInput()
		case !a.stream.ended && silence > 0 && dead != nil && cancelled != nil: // it works again
			silence = 0
			late.Stop()
		}
		if silence > 0 && cancelled != nil {
			late.Reset(silence)
		}
	}
}

func (a *attempt) closeInput() {
	if a.process.Stdin != nil {
		_ = a.process.Stdin.Close()
	}
}

// interrupt asks the program to stop: by a message of its protocol, or with SIGINT
// as Ctrl-C does.
func (a *attempt) interrupt() {
	if stop := a.runner.dialect.interrupt; stop != nil {
		a.send(stop())
		return
	}
	a.process.Interrupt()
}

// end ends the process and waits for all goroutines of the attempt.
func (a *attempt) end() {
	a.finish()
	a.process.Stop(procgroup.Ladder{Term: min(a.runner.options.Grace, procgroup.TermWait)})
	a.others.Wait()
}

// outcome returns nil if the run succeeded or was cancelled, and otherwise why it
// failed. The exit status counts only if no line of the dialect reports the end,
// because some programs exit with 0 when they were interrupted.
func (a *attempt) outcome() error {
	s := a.stream
	switch {
	case s.n.Over() || a.cancelled():
		return nil
	case a.failed != nil:
		return a.failed
	case s.failure != "":
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent failed: %s", narrate.Brief(s.failure, nil))
	case !s.ended && (!a.runner.dialect.byExitStatus || !a.succeeded()):
		return a.deathError()
	}
	s.n.Done()
	return nil
}

// cancelled reports whether the run was stopped from outside.
func (a *attempt) cancelled() bool { return a.ctx.Err() != nil }

// succeeded reports whether the program exited with 0. It waits for the exit, because
// the output can end before the process does.
func (a *attempt) succeeded() bool {
	t := time.NewTimer(a.runner.options.Grace)
	defer t.Stop()
	select {
	case <-a.process.Done():
	case <-t.C:
	}
	return a.process.Success()
}

func (a *attempt) deathError() error {
	t := time.NewTimer(afterDeath)
	defer t.Stop()
	select {
	case <-a.process.Done():
	case <-t.C:
	}
	text := "the agent ended without a result"
	if exit := a.process.Exit(); exit != "" {
		text += ": " + exit
	}
	if last := narrate.LastLine(a.process.LastWords(afterDeath)); last != "" {
		text += ": " + last
	}
	return &tapedeck.Error{Kind: tapedeck.Unavailable, Message: text}
}
