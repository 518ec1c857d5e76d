package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/payload"
)

// A scribe is an agent that stores each turn some time after its answer, and forgets it if
// its input ends before.
type scribe struct {
	mu     sync.Mutex    // held while stored is used: each timer has a goroutine of its own
	stored []string      // its turns
	after  time.Duration // when it stores a turn, after its answer
	chats  time.Duration // the pause between updates that it sends after its turn, for ever; 0 for none
	deaf   bool          // it does not answer unknown methods
	sleeps time.Duration // before it answers them
	waits  bool          // it answers the prompt only when it is cancelled
}

// A scribing is a process of a scribe.
type scribing struct {
	*scribe
	in   *io.PipeWriter
	out  *io.PipeWriter
	done chan struct{}
	id   json.RawMessage // of the prompt
	text string
}

func (s *scribe) start(procgroup.Spec) (started, error) {
	theirs, in := io.Pipe()
	stdout, out := io.Pipe()
	p := &scribing{scribe: s, in: in, out: out, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer out.Close()
		for lines := bufio.NewScanner(theirs); lines.Scan(); {
			p.take(lines.Bytes())
		}
	}()
	return started{p, in, stdout}, nil
}

func (p *scribing) take(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Prompt []struct{ Text string } }
	}
	if json.Unmarshal(line, &m) != nil {
		return
	}
	switch m.Method {
	case "initialize":
		p.say(`{"id":` + string(m.ID) + `,"result":{"protocolVersion":1}}`)
	case "session/new", "session/resume":
		p.say(`{"id":` + string(m.ID) + `,"result":{"sessionId":"s1"}}`)
	case "session/prompt":
		p.id, p.text = m.ID, m.Params.Prompt[0].Text
		p.mu.Lock()
		known := strings.Join(p.stored, ", ")
		p.mu.Unlock()
		p.say(`{"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I know: ` + known + `"}}}}`)
		if !p.waits {
			p.answer("end_turn")
		}
	case "session/cancel":
		p.answer("cancelled")
	default:
		if m.ID != nil && !p.deaf {
			p.later(p.sleeps, func() { p.say(`{"id":` + string(m.ID) + `,"error":{"code":-32601,"message":"unknown"}}`) })
		}
	}
}

func (p *scribing) say(line string) {
	_, _ = io.WriteString(p.out, `{"jsonrpc":"2.0",`+line[1:]+"\n")
}

func (p *scribing) answer(reason string) {
	p.say(`{"id":` + string(p.id) + `,"result":{"stopReason":"` + reason + `"}}`)
	p.later(p.after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stored = append(p.stored, p.text)
	})
	if p.chats > 0 {
		p.chat()
	}
}

func (p *scribing) chat() {
	p.later(p.chats, func() {
		p.say(`{"method":"_chat","params":{}}`)
		p.chat()
	})
}

// later does something, unless the process has ended.
func (p *scribing) later(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		select {
		case <-p.done:
		default:
			do()
		}
	})
}

func (p *scribing) Begin(func(payload.AgentStarted) error) error { return nil }
func (p *scribing) Done() <-chan struct{}                        { return p.done }
func (p *scribing) Exit() string                                 { return "" }
func (p *scribing) LastWords(time.Duration) string               { return "" }

func (p *scribing) Stop(procgroup.Ladder) {
	_ = p.in.Close()
	<-p.done
}

// told runs a turn, and returns what the agent says. If cancel is true, it cancels the turn
// once the agent has said something.
func told(t *testing.T, s *scribe, task string, cancel bool) string {
	t.Helper()
	r := New(Options{Name: "scribe", Command: []string{os.Args[0]}})
	r.launch = s.start
	in := tapedeck.Invocation{ID: "inv", Task: task, Thread: tapedeck.MainThread, Link: &tapedeck.Link{Runner: r.link(), NativeID: "s1"}}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var said strings.Builder
	for e, err := range r.Run(ctx, in) {
		if err != nil {
			t.Fatal(err)
		}
		if d, err := payload.DecodeAs[payload.TextMessageContent](e); err == nil {
			said.WriteString(string(d.Delta))
			if cancel {
				stop(errors.New("cancelled"))
			}
		}
	}
	return said.String()
}

// TestStoresItsTurn checks that an agent which stores a turn after its answer knows it in
// its next process, and how long the run waits for that.
func TestStoresItsTurn(t *testing.T) {
	const after = 200 * time.Millisecond
	for name, tt := range map[string]struct {
		agent  *scribe
		cancel bool
		took   time.Duration // in the clock of the bubble
		forget bool
	}{
		"a normal turn":                        {&scribe{after: after}, false, 300 * time.Millisecond, false},
		"a cancelled turn":                     {&scribe{after: after, waits: true}, true, 300 * time.Millisecond, false},
		"an agent without a moment":            {&scribe{after: time.Second, sleeps: 900 * time.Millisecond}, false, 1200 * time.Millisecond, false},
		"it does not answer what it must":      {&scribe{after: after, deaf: true}, false, 2 * time.Second, false},
		"it is never quiet":                    {&scribe{after: after, chats: 100 * time.Millisecond}, false, 2 * time.Second, false},
		"it is never quiet, and was cancelled": {&scribe{after: after, chats: 100 * time.Millisecond, waits: true}, true, procgroup.CancelWait, false},
		"it takes too long":                    {&scribe{after: time.Minute}, false, 300 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				told(t, tt.agent, "a", tt.cancel)
				if took := time.Since(begin); took != tt.took {
					t.Errorf("the run took %v, want %v", took, tt.took)
				}
				synctest.Wait() // the timers of the first process have ended
				tt.agent.waits, tt.agent.chats = false, 0
				want := "I know: a"
				if tt.forget {
					want = "I know: "
				}
				if got := told(t, tt.agent, "b", false); got != want {
					t.Errorf("in the next turn it says %q, want %q", got, want)
				}
			})
		})
	}
}
