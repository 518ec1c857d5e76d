package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonrpc"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/payload"
)

// A conversation is one invocation and the process of its agent. The goroutine of the
// run owns its state. Other goroutines read messages, wait for answers and wait for
// people, and talk to it over channels. The reader waits until each message was taken.
type conversation struct {
	runner *Runner
	ctx    context.Context // the context of the run; done when the agent must stop
	in     tapedeck.Invocation
	n      *narrate.Narrator
	dir    string

	process program
	stdout  io.Reader
	peer    *jsonrpc.Peer
	inbox   chan jsonrpc.Message
	life    context.Context // until the conversation ends
	finish  context.CancelFunc
	others  sync.WaitGroup
	answers chan answer

	quirks    Quirks
	canLoad   bool
	native    string // the agent's id of the conversation; "" before it is known
	muted     bool   // updates of the agent repeat an earlier conversation
	replayed  int    // number of muted updates
	asked     int    // number of questions so far
	tools     map[string]*tool
	lane      string          // the sender of the newest update: the call that started a sub-agent, or "" for the agent itself
	subs      map[string]bool // whether a sub-agent is working, by the call that started it
	spent     spending
	cancelled bool
	deadline  time.Time // when a cancelled agent is ended; zero before
	resting   bool      // the turn is over, and the agent only stores it
	denied    bool      // a person has rejected a request
	steering  steering
}

// A program is the process of an agent.
type program interface {
	Begin(announce func(payload.AgentStarted) error) error
	Done() <-chan struct{}
	Exit() string
	LastWords(limit time.Duration) string
	Stop(l procgroup.Ladder)
}

// errLeft means that yield has returned false: no more events are wanted.
var errLeft = errors.New("the run has ended")

func newConversation(ctx context.Context, r *Runner, in tapedeck.Invocation, n *narrate.Narrator, p started, dir string) *conversation {
	c := &conversation{
		runner: r, ctx: ctx, in: in, n: n, dir: dir, process: p.program, stdout: p.stdout, quirks: quirksOf(r.options.Name),
		inbox: make(chan jsonrpc.Message), answers: make(chan answer), tools: map[string]*tool{}, subs: map[string]bool{},
	}
	c.life, c.finish = context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	c.peer = jsonrpc.New(p.stdout, p.stdin, func(m jsonrpc.Message) {
		<-ready
		select {
		case c.inbox <- m:
		case <-c.peer.Closed():
		}
	})
	close(ready) // c.peer is set
	return c
}

// end ends the process and waits for all goroutines of the conversation.
func (c *conversation) end() {
	c.finish()
	c.peer.Close()
	eof := c.runner.options.Grace
	if c.quirks.DeafToEOF || c.n.Over() || c.ctx.Err() != nil {
		eof = 0
	}
	c.others.Go(func() {
		c.peer.Wait()
		drain(c.stdout) // otherwise the agent could block on a full pipe and not exit
	})
	c.process.Stop(procgroup.Ladder{EOF: eof, Term: min(c.runner.options.Grace, procgroup.TermWait)})
	c.others.Wait()
}

// An outcome is the answer of the agent to a request.
type outcome struct {
	raw json.RawMessage
	err error
}

// request sends a request. The answer arrives in the channel.
func (c *conversation) request(ctx context.Context, method string, params any) chan outcome {
	done := make(chan outcome, 1)
	c.others.Go(func() {
		raw, err := c.peer.Call(ctx, method, params)
		done <- outcome{raw, err}
	})
	return done
}

// call sends a request and waits for the answer. Meanwhile it handles the messages of
// the agent. When the run is cancelled, call sends a cancel to the agent and gives it
// some time to finish. A limit of 0 means no limit.
func (c *conversation) call(method string, params any, limit time.Duration) (json.RawMessage, error) {
	if c.cancelled {
		return nil, c.ctx.Err()
	}
	life, giveUp := context.WithCancel(c.life)
	defer giveUp()
	o := c.await(method, c.request(life, method, params), limit)
	return o.raw, o.err
}

// await waits for the answer to a request, see call.
func (c *conversation) await(method string, done <-chan outcome, limit time.Duration) outcome {
	var news <-chan struct{} // not before the agent has said something: a message must not overtake the task
	var answered chan outcome
	w := c.newWait(limit)
	defer w.stop()
	for !c.n.Over() {
		if method == promptMethod {
			answered = c.steering.done
		}
		select {
		case m := <-c.inbox:
			c.handle(m)
			news = c.news(method)
			if w.dead == nil && !c.cancelled {
				w.within(afterDeath) // more output may follow
			}
		case a := <-c.answers:
			c.reply(a)
		case o := <-done:
			return outcome{o.raw, c.explain(method, o.err)}
		case <-news:
			if err := c.hear(); err != nil {
				return outcome{err: err}
			}
			c.steer()
		case o := <-answered:
			c.steered(o)
		case <-w.cancelled:
			if w.cancelled, news = nil, nil; !c.cancel() {
				return outcome{err: c.ctx.Err()}
			}
			left := min(c.runner.options.Grace, procgroup.CancelWait)
			c.deadline = time.Now().Add(left)
			w.within(left)
		case <-w.dead: // other processes of its group may keep its output open
			if w.dead = nil; !c.cancelled {
				w.within(afterDeath)
			}
		case <-w.late:
			return outcome{err: c.late(method)}
		}
	}
	return outcome{err: errLeft}
}

// afterDeath is how long the output of a dead process may be silent before call stops
// waiting.
const afterDeath = 500 * time.Millisecond

// A wait has the channels that end the wait for an answer.
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

// within sets the deadline of the answer to d from now.
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

// cancel asks the agent to stop. It reports false if the agent has not begun the task.
func (c *conversation) cancel() bool {
	c.cancelled = true
	if c.native == "" || c.muted {
		return false
	}
	c.others.Go(func() { // in a goroutine, because the agent may not read its input
		_ = c.peer.Notify(c.life, "session/cancel", map[string]string{"sessionId": c.native})
	})
	return true
}

// explain returns why a call failed: the error of the agent, or the end of its process.
func (c *conversation) explain(method string, err error) error {
	if !errors.Is(err, jsonrpc.ErrClosed) || c.ctx.Err() != nil {
		return err
	}
	w := c.newWait(afterDeath)
	defer w.stop()
	select {
	case <-w.dead: // the process nearly always ends at once
	case <-w.late:
	}
	return c.late(method)
}

// late returns the error for a missing answer, with the reason as far as it is known.
func (c *conversation) late(method string) error {
	text := "the agent has not answered " + method + " in time"
	if exit := c.process.Exit(); exit != "" {
		text = "the agent ended before it answered " + method + ": " + exit
	} else if c.peer.Err() != nil {
		text = "the agent closed its output before it answered " + method
	}
	if last := narrate.LastLine(c.process.LastWords(afterDeath)); last != "" {
		text += ": " + last
	}
	return &tapedeck.Error{Kind: tapedeck.Unavailable, Message: text}
}
