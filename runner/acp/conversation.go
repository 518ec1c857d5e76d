package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonrpc"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/procgroup"
)

// A conversation is one invocation with the process that is its agent. All of it
// is in the goroutine of the run but for the reading of what the agent says,
// which waits until that was taken, and for what waits for somebody else.
type conversation struct {
	runner *Runner
	ctx    context.Context // of the run; done when the agent is to stop
	in     tapedeck.Invocation
	n      *narrate.Narrator
	dir    string

	process *procgroup.Process
	peer    *jsonrpc.Peer
	inbox   chan jsonrpc.Message
	life    context.Context // until the conversation ends
	finish  context.CancelFunc
	others  sync.WaitGroup
	answers chan answer

	quirks    Quirks
	canLoad   bool
	native    string // the agent's id of the conversation; "" before it is known
	muted     bool   // what the agent says was said before
	replayed  int    // how many updates were muted
	asked     int
	tools     map[string]*tool
	lane      string          // whose the newest update is: the call that has started the sub-agent, "" for the agent itself
	subs      map[string]bool // by that call, whether it is at work
	spent     spending
	cancelled bool
	denied    bool // people have rejected something
}

// errLeft says that nobody listens any more.
var errLeft = errors.New("nobody listens")

func newConversation(ctx context.Context, r *Runner, in tapedeck.Invocation, n *narrate.Narrator, p *procgroup.Process, dir string) *conversation {
	c := &conversation{
		runner: r, ctx: ctx, in: in, n: n, dir: dir, process: p, quirks: quirksOf(r.options.Name),
		inbox: make(chan jsonrpc.Message), answers: make(chan answer), tools: map[string]*tool{}, subs: map[string]bool{},
	}
	c.life, c.finish = context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	c.peer = jsonrpc.New(p.Stdout, p.Stdin, func(m jsonrpc.Message) {
		<-ready
		select {
		case c.inbox <- m:
		case <-c.peer.Closed():
		}
	})
	close(ready) // c.peer is set
	return c
}

// end ends the process and waits for all that goes on beside the run.
func (c *conversation) end() {
	c.finish()
	c.peer.Close()
	eof := c.runner.options.Grace
	if c.quirks.DeafToEOF || c.n.Over() || c.ctx.Err() != nil {
		eof = 0
	}
	c.others.Go(func() {
		c.peer.Wait()
		drain(c.process.Stdout) // lest it waits for somebody to read, and so cannot end
	})
	c.process.Stop(procgroup.Ladder{EOF: eof, Term: min(c.runner.options.Grace, procgroup.TermWait)})
	c.others.Wait()
}

// call asks the agent and waits for its answer, hearing what it says meanwhile.
// When the run is cancelled the agent is told, and gets some time to come to an
// end. A limit of 0 is none.
func (c *conversation) call(method string, params any, limit time.Duration) (json.RawMessage, error) {
	type outcome struct {
		raw json.RawMessage
		err error
	}
	if c.cancelled {
		return nil, c.ctx.Err()
	}
	done := make(chan outcome, 1)
	life, giveUp := context.WithCancel(c.life)
	defer giveUp()
	c.others.Go(func() {
		raw, err := c.peer.Call(life, method, params)
		done <- outcome{raw, err}
	})
	w := c.newWait(limit)
	defer w.stop()
	for !c.n.Over() {
		select {
		case m := <-c.inbox:
			c.hear(m)
			if w.dead == nil && !c.cancelled {
				w.within(afterDeath) // it has not said all yet
			}
		case a := <-c.answers:
			c.reply(a)
		case o := <-done:
			return o.raw, c.explain(method, o.err)
		case <-w.cancelled:
			if w.cancelled = nil; !c.cancel() {
				return nil, c.ctx.Err()
			}
			w.within(min(c.runner.options.Grace, procgroup.CancelWait))
		case <-w.dead: // others of its group may hold its output open, so that it does not end
			if w.dead = nil; !c.cancelled {
				w.within(afterDeath)
			}
		case <-w.late:
			return nil, c.late(method)
		}
	}
	return nil, errLeft
}

// afterDeath is how long a process that is dead may be silent before it is taken
// to have said all.
const afterDeath = 500 * time.Millisecond

// A wait is what ends the wait for an answer.
type wait struct {
	cancelled <-chan struct{}
	dead      <-chan struct{}
	late      <-chan time.Time
	timer     *time.Timer
}

func (c *conversation) newWait(limit time.Duration) *wait {
	w := &wait{cancelled: c.ctx.Done(), dead: c.process.Done()}
	if limit != 0 {
		w.within(limit)
	}
	return w
}

// within says that the answer must come within d from now.
func (w *wait) within(d time.Duration) {
	w.stop()
	w.timer = time.NewTimer(d)
	w.late = w.timer.C
}

func (w *wait) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// cancel tells the agent to stop. It reports false if there is nothing that it
// could stop.
func (c *conversation) cancel() bool {
	c.cancelled = true
	if c.native == "" || c.muted {
		return false
	}
	c.others.Go(func() { // it may not listen
		_ = c.peer.Notify(c.life, "session/cancel", map[string]string{"sessionId": c.native})
	})
	return true
}

// explain says why a call failed: the agent's own word for it, or its death.
func (c *conversation) explain(method string, err error) error {
	if !errors.Is(err, jsonrpc.ErrClosed) || c.ctx.Err() != nil {
		return err
	}
	w := c.newWait(afterDeath)
	defer w.stop()
	select {
	case <-w.dead: // nearly always it comes at once
	case <-w.late:
	}
	return c.late(method)
}

// late says why there was no answer.
func (c *conversation) late(method string) error {
	text := "the agent has not answered " + method + " in time"
	if exit := c.process.Exit(); exit != "" {
		text = "the agent ended before it answered " + method + ": " + exit
	} else if c.peer.Err() != nil {
		text = "the agent closed its output before it answered " + method
	}
	if last := narrate.LastLine(c.process.Stderr()); last != "" {
		text += ": " + last
	}
	return &tapedeck.Error{Kind: tapedeck.Unavailable, Message: text}
}
