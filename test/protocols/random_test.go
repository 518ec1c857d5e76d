package protocols

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/script"
)

// An opened thing is a text, a thought or a call that is open.
type opened struct {
	end    func()
	isCall bool
}

// A scribe writes random runs as an external program does.
type scribe struct {
	*rand.Rand
	lines    []string // the events
	inv      string
	open     []opened
	names    map[string]bool // of what is open
	said     map[string]bool // the texts that have begun
	again    bool            // a text was opened again
	retried  bool            // a run has repeated a step
	replaced bool            // a whole message has replaced a text
	places   []int64         // offsets at which no call is open
	left     bool            // a run has failed and left something open
	stepAt   int             // the number of lines at which an attempt can begin; 0 for none
	sameIDs  bool            // each run uses the ids of the one before again
}

func (s *scribe) add(typ, format string, args ...any) {
	if !slices.ContainsFunc(s.open, func(o opened) bool { return o.isCall }) {
		s.places = append(s.places, int64(len(s.lines)+1))
	}
	s.lines = append(s.lines, fmt.Sprintf(`{"type":%q,"thread":%q,"invocation":%q,"data":%s}`, typ, thread, s.inv, fmt.Sprintf(format, args...)))
}

// run writes a run: texts, which may be opened again, thoughts, calls and whole messages, in
// pieces that mix.
func (s *scribe) run(n int) {
	s.inv, s.open, s.names = fmt.Sprint("run", n), nil, map[string]bool{}
	s.add("message.added", `{"message":{"id":"u%d","role":"user","content":"question %d"}}`, n, n)
	s.add("RUN_STARTED", `{"threadId":"t","runId":%q}`, s.inv)
	s.stepAt = len(s.lines)
	if s.sameIDs {
		clear(s.said)
	}
	s.places = s.places[:len(s.places)-1] // a question without a run is no task of A2A
	for step := range s.IntN(20) {
		s.step(n, step)
	}
	if s.IntN(3) == 0 {
		for _, o := range s.open {
			if o.isCall {
				o.end()
			}
		}
		s.open = slices.DeleteFunc(s.open, func(o opened) bool { return o.isCall })
		s.left = s.left || len(s.open) > 0
		s.add("RUN_ERROR", `{"message":"it failed"}`)
		return
	}
	for len(s.open) > 0 {
		s.end()
	}
	s.add("RUN_FINISHED", `{"threadId":"t","runId":%q}`, s.inv)
}

// end ends something that is open.
func (s *scribe) end() {
	i := s.IntN(len(s.open))
	s.open[i].end()
	s.open = append(s.open[:i], s.open[i+1:]...)
}

// begin notes that something is open. It reports false if it was open before.
func (s *scribe) begin(name string, end func()) bool {
	if s.names[name] {
		return false
	}
	s.names[name] = true
	s.open = append(s.open, opened{func() { end(); delete(s.names, name) }, name[0] == 'c'})
	return true
}

// step writes the next piece of a run.
func (s *scribe) step(n, step int) {
	run := n
	if s.sameIDs {
		run = 0
	}
	id, unique := fmt.Sprintf("%d.%d", run, s.IntN(2)), fmt.Sprintf("%d.%d.", run, step)
	if len(s.open) == 0 && s.IntN(2) == 0 {
		s.stepAt = len(s.lines)
	}
	switch s.IntN(10) {
	case 9: // it replaces a text that has ended, or is new
		if !s.names["m"+id] && (s.said[id] || !s.sameIDs) { // otherwise it could replace one of the run before
			s.replaced, s.said[id] = s.replaced || s.said[id], true
			s.add("message.added", `{"message":{"id":"m%s","role":"assistant","content":"other%d "}}`, id, step)
		}
	case 8:
		if s.stepAt < len(s.lines) {
			s.add("attempt.superseded", `{"fromOffset":%d,"reason":"it broke off"}`, s.stepAt+1)
			s.open, s.names, s.retried = nil, map[string]bool{}, true
			if s.sameIDs {
				clear(s.said) // what is left has the id in the run before
			}
		}
	case 0, 1, 2:
		if s.begin("m"+id, func() { s.add("TEXT_MESSAGE_END", `{"messageId":"m%s"}`, id) }) {
			s.again = s.again || s.said[id]
			s.said[id] = true
			s.add("TEXT_MESSAGE_START", `{"messageId":"m%s","role":"assistant"}`, id)
		}
		s.add("TEXT_MESSAGE_CONTENT", `{"messageId":"m%s","delta":"word%d "}`, id, step)
	case 3:
		if s.begin("thought", func() {
			s.add("REASONING_MESSAGE_CONTENT", `{"messageId":"t%s","delta":"end"}`, unique)
			s.add("REASONING_MESSAGE_END", `{"messageId":"t%s"}`, unique)
		}) {
			s.add("REASONING_MESSAGE_START", `{"messageId":"t%s","role":"reasoning"}`, unique)
			s.add("REASONING_MESSAGE_CONTENT", `{"messageId":"t%s","delta":"hm%d "}`, unique, step)
		}
	case 4, 5:
		result := []string{`"plain"`, `"{\"found\": 2}"`, `"[1, 2]"`, `"7"`}[s.IntN(4)]
		if s.begin("c"+unique, func() {
			s.add("TOOL_CALL_ARGS", `{"toolCallId":"c%s","delta":"%d}"}`, unique, step)
			s.add("TOOL_CALL_END", `{"toolCallId":"c%s"}`, unique)
			s.add("TOOL_CALL_RESULT", `{"messageId":"r%s","toolCallId":"c%s","content":%s}`, unique, unique, result)
		}) {
			s.add("TOOL_CALL_START", `{"toolCallId":"c%s","toolCallName":"tool"}`, unique)
			s.add("TOOL_CALL_ARGS", `{"toolCallId":"c%s","delta":"{\"n\":"}`, unique)
		}
	case 6:
		unique = fmt.Sprintf("%d.%d.", n, step)
		s.add("message.added", `{"message":{"id":"a%s","role":"assistant","content":"whole %d","toolCalls":[{"id":"k%s","type":"function","function":{"name":"tool","arguments":"{}"}}]}}`, unique, step, unique)
		s.add("message.added", `{"message":{"id":"q%s","role":"tool","toolCallId":"k%s","content":"answer %d"}}`, unique, unique, step)
	case 7:
		if len(s.open) > 0 {
			s.end()
		}
	}
}

// TestRandomRuns: runs of an external program, with everything that may be in them in any
// order, are the same conversation in all protocols, wherever a reader begins, and so is
// what a rewind leaves of them.
func TestRandomRuns(t *testing.T) {
	n := 30
	if testing.Short() {
		n = 8
	}
	for i := range n {
		seed := uint64(time.Now().UnixNano()) + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomRun(t, seed, false) })
		t.Run(fmt.Sprint(seed, " with the same ids in each run"), func(t *testing.T) { randomRun(t, seed, true) })
	}
}

// randomRun compares the protocols. If each run uses the same ids, only those that give one
// message or call an id of its own.
func randomRun(t *testing.T, seed uint64, sameIDs bool) {
	s := &scribe{Rand: rand.New(rand.NewPCG(seed, 0)), said: map[string]bool{}, sameIDs: sameIDs}
	for n := range 1 + s.IntN(2) {
		s.run(n)
	}
	w := newWorldInMemory(t, s)
	defer w.stop()
	if sameIDs {
		named := []string{"tapedeck.replay.v1", "Durable Streams, view messages", "AG-UI connect"}
		w.readers = slices.DeleteFunc(w.readers, func(r *reader) bool { return !slices.Contains(named, r.name) })
	}
	cut := 1 + s.IntN(len(s.lines)-1) // a page of the task protocol without a history begins with the newest run
	defer func() {
		if t.Failed() {
			t.Logf("the readers begin after %d events of\n%s", cut, strings.Join(s.lines, "\n"))
		}
	}()
	w.write(s.lines[:cut])
	w.followAll()
	w.write(s.lines[cut:])
	w.again()
	if s.retried || s.replaced { // the task protocol does not say so
		w.reloadPages()
	}
	w.awaitSame(nil)

	to := s.places[s.IntN(len(s.places))]
	for _, r := range w.readers {
		if r.parts { // it shows no part of a message
			r.without = append(r.without, payload.RoleAssistant, payload.RoleReasoning)
		}
	}
	switch _, err := w.api().Rewind(t.Context(), api.Rewind{Session: session, ToOffset: &to}); {
	case tapedeck.KindOf(err) == tapedeck.Conflict: // there is nothing to revert
		return
	case err != nil:
		t.Fatal(err)
	}
	t.Logf("the session goes back to offset %d", to)
	w.reloadPages()
	w.awaitSame(unaware)
}

// A whole message replaces one that its run has streamed, and the run continues it. All
// protocols show the same conversation.
func TestReplacedMessage(t *testing.T) {
	s := &scribe{Rand: rand.New(rand.NewPCG(1, 1)), said: map[string]bool{}, replaced: true}
	s.inv = "run1"
	s.add("RUN_STARTED", `{"threadId":"t","runId":"run1"}`)
	say := func(delta string) {
		s.add("TEXT_MESSAGE_START", `{"messageId":"m1","role":"assistant"}`)
		s.add("TEXT_MESSAGE_CONTENT", `{"messageId":"m1","delta":%q}`, delta)
		s.add("TEXT_MESSAGE_END", `{"messageId":"m1"}`)
	}
	replace := func(text string) {
		s.add("message.added", `{"message":{"id":"m1","role":"assistant","content":%q}}`, text)
	}
	say("Three of five")
	replace("Four")
	say(" of five")
	s.add("TOOL_CALL_START", `{"toolCallId":"c1","toolCallName":"tool"}`)
	s.add("TOOL_CALL_ARGS", `{"toolCallId":"c1","delta":"{}"}`)
	s.add("TOOL_CALL_END", `{"toolCallId":"c1"}`)
	replace("Five of five")
	w := newWorldInMemory(t, s)
	defer w.stop()
	w.write(s.lines[:2])
	w.followAll()
	w.write(s.lines[2:])
	w.again()
	w.reloadPages()
	w.awaitSame(nil)
}

// A whole message replaces one of an earlier run, and a user's message is sent again.
func TestReplacedMessageOfAnotherRun(t *testing.T) {
	s := &scribe{Rand: rand.New(rand.NewPCG(1, 1)), said: map[string]bool{}, replaced: true, inv: "run1"}
	s.add("RUN_STARTED", `{"threadId":"t","runId":"run1"}`)
	s.add("message.added", `{"message":{"id":"u1","role":"user","content":"Which?"}}`)
	s.add("TEXT_MESSAGE_START", `{"messageId":"m1","role":"assistant"}`)
	s.add("TEXT_MESSAGE_CONTENT", `{"messageId":"m1","delta":"Three"}`)
	s.add("TEXT_MESSAGE_END", `{"messageId":"m1"}`)
	s.add("RUN_FINISHED", `{"threadId":"t","runId":"run1"}`)
	s.inv = "run2"
	s.add("RUN_STARTED", `{"threadId":"t","runId":"run2"}`)
	s.add("message.added", `{"message":{"id":"u1","role":"user","content":"Which?"}}`)
	s.add("message.added", `{"message":{"id":"m1","role":"assistant","content":"Four"}}`)
	w := newWorldInMemory(t, s)
	defer w.stop()
	w.readers = slices.DeleteFunc(w.readers, func(r *reader) bool { return r.name != "tapedeck.replay.v1" && r.name != "AG-UI connect" })
	w.write(s.lines[:6])
	w.followAll()
	w.awaitText("Three")
	w.write(s.lines[6:])
	w.again()
	w.awaitSame(nil)
}

// A run uses the id of a call again: AG-UI and A2A show two calls, as the snapshot does.
func TestCallsOfOneID(t *testing.T) {
	s := &scribe{Rand: rand.New(rand.NewPCG(1, 1)), said: map[string]bool{}, inv: "run1"}
	s.add("RUN_STARTED", `{"threadId":"t","runId":"run1"}`)
	for i := range 3 {
		s.add("TOOL_CALL_START", `{"toolCallId":"c","toolCallName":"tool"}`)
		s.add("TOOL_CALL_ARGS", `{"toolCallId":"c","delta":"{\"n\":%d}"}`, i)
		s.add("TOOL_CALL_END", `{"toolCallId":"c"}`)
		s.add("TOOL_CALL_RESULT", `{"messageId":"r%d","toolCallId":"c","content":"answer %d"}`, i, i)
	}
	w := newWorldInMemory(t, s)
	defer w.stop()
	w.readers = slices.DeleteFunc(w.readers, func(r *reader) bool { return !strings.HasPrefix(r.name, "AG-UI") && !strings.HasPrefix(r.name, "A2A") })
	w.write(s.lines[:2])
	w.followAll()
	w.write(s.lines[2:])
	if all := w.awaitSame(nil); len(all) != 3 || all[2].Args != `{"n":2}` || all[0].Result != "answer 0" {
		t.Errorf("the conversation is %v", all)
	}
}

// newWorldInMemory returns a world whose server is in this process, for what s writes.
func newWorldInMemory(t *testing.T, s *scribe) *world {
	t.Helper()
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, Agents: []deck.Agent{{Name: "hello", Runner: script.New(script.Options{})}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(d.Handler())
	t.Cleanup(func() {
		_ = d.Close(context.Background())
		server.CloseClientConnections()
		server.Close()
	})
	if _, err := d.Create(t.Context(), api.NewSession{ID: session}); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, agent: "hello", url: server.URL, changed: make(chan struct{}), readers: allReaders()}
	w.ctx, w.cancel = context.WithTimeout(t.Context(), 5*time.Minute)
	// MCP has no stream; its clients read a part of the snapshot.
	w.readers = slices.DeleteFunc(w.readers, func(r *reader) bool { return strings.HasPrefix(r.name, "MCP") })
	for _, r := range w.readers {
		r.mixed = true
		if r.reload != nil { // otherwise it begins with the newest run
			r.reload()
		}
		if r.parts && (s.again || s.left || s.retried || s.replaced) {
			r.without = append(r.without, payload.RoleAssistant, payload.RoleReasoning)
		}
	}
	w.connect()
	return w
}

// write appends events.
func (w *world) write(lines []string) {
	w.t.Helper()
	if len(lines) == 0 {
		return
	}
	if _, err := w.api().Append(w.ctx, session, strings.NewReader(strings.Join(lines, "\n")), client.AppendOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
