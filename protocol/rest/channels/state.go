package channels

import (
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// Limits of what a reader remembers. What is beyond is left out of rows.
const (
	maxNoted = 10_000   // calls, runs or messages of users
	maxArgs  = 16 << 20 // bytes of the arguments of all calls without a result
)

// A state is what rows need of earlier events.
type state struct {
	agents map[string]string     // of open runs
	calls  map[callKey]*madeCall // without a result
	users  map[string]bool       // the open messages of users

	size int // of the arguments of the calls, in bytes
}

type callKey struct{ thread, id string }

type madeCall struct {
	tool string
	args []byte
	long bool // there was no room for the arguments
}

// begin notes a call, in the place of one with the same id.
func (s *state) begin(key callKey, tool, args string) {
	s.drop(key)
	k := &madeCall{tool: tool}
	if put(&s.calls, key, k); s.calls[key] == k {
		s.add(k, args)
	}
}

// add adds arguments to a call.
func (s *state) add(k *madeCall, args string) {
	if k.long = k.long || s.size+len(args) > maxArgs; k.long {
		s.size -= len(k.args)
		k.args = nil
		return
	}
	k.args = append(k.args, args...)
	s.size += len(args)
}

func (s *state) drop(key callKey) {
	if k := s.calls[key]; k != nil {
		s.size -= len(k.args)
		delete(s.calls, key)
	}
}

// Note notes what later rows need of e, which comes after all events that were noted.
func (r *Reader) Note(e *tapedeck.Event) error {
	switch e.Type {
	case tapedeck.RunStarted:
		if agent := runAgent(e); agent != "" {
			put(&r.known.agents, e.Invocation, agent)
		}
	case tapedeck.RunFinished, tapedeck.RunError:
		delete(r.known.agents, e.Invocation)
	case tapedeck.TextMessageStart:
		var d payload.TextMessageStart
		if e.Unpack(&d) && d.Role == payload.RoleUser {
			put(&r.known.users, d.MessageID, true)
		}
	case tapedeck.TextMessageEnd:
		if len(r.known.users) > 0 {
			var d payload.TextMessageEnd
			_ = e.Unpack(&d) // an end without an id ends nothing
			delete(r.known.users, d.MessageID)
		}
	case tapedeck.ToolCallStart, tapedeck.ToolCallArgs, tapedeck.ToolCallResult, tapedeck.MessageAdded:
		return r.noteCall(e)
	}
	return nil
}

func (r *Reader) noteCall(e *tapedeck.Event) error {
	var d struct {
		ID      string          `json:"toolCallId"`
		Tool    string          `json:"toolCallName"`
		Delta   payload.Piece   `json:"delta"`
		Message payload.Message `json:"message"`
	}
	if !e.Unpack(&d) {
		return nil
	}
	key := callKey{e.ThreadName(), d.ID}
	switch e.Type {
	case tapedeck.ToolCallStart:
		r.known.begin(key, d.Tool, "")
	case tapedeck.ToolCallArgs:
		k, err := r.call(e, d.ID)
		if err != nil {
			return err
		}
		if k != nil {
			r.known.add(k, string(d.Delta))
		}
	case tapedeck.ToolCallResult:
		r.known.drop(key)
	case tapedeck.MessageAdded:
		for _, k := range d.Message.ToolCalls {
			r.known.begin(callKey{e.ThreadName(), k.ID}, k.Function.Name, k.Function.Arguments)
		}
	}
	return nil
}

// call returns what is known of the call of an event, nil if nothing is.
func (r *Reader) call(e *tapedeck.Event, id string) (*madeCall, error) {
	key := callKey{e.ThreadName(), id}
	if k := r.known.calls[key]; k != nil {
		return k, nil
	}
	err := r.ask()
	return r.known.calls[key], err
}

// agent returns the agent of an event.
func (r *Reader) agent(e *tapedeck.Event) (string, error) {
	if name, ok := strings.CutPrefix(e.Actor, "agent:"); ok {
		return name, nil
	}
	if e.Type == tapedeck.RunStarted {
		if name := runAgent(e); name != "" {
			return name, nil
		}
	}
	name, ok := r.known.agents[e.Invocation]
	if !ok && e.Invocation != "" {
		if err := r.ask(); err != nil {
			return "", err
		}
		name = r.known.agents[e.Invocation]
	}
	if name == "" {
		name = e.ThreadName()
	}
	return name, nil
}

// AgentOf returns the agent of an event of the channels chunks, toolCalls or agentState, "" for
// an event of another one.
func (r *Reader) AgentOf(e *tapedeck.Event) (string, error) {
	switch channelOf(e) {
	case tapedeck.ChannelChunks, tapedeck.ChannelToolCalls, tapedeck.ChannelAgentState:
		return r.agent(e)
	}
	return "", nil
}

// isUsers reports whether a piece of text is of a user's message.
func (r *Reader) isUsers(message string) (bool, error) {
	if r.known.users[message] {
		return true, nil
	}
	err := r.ask()
	return r.known.users[message], err
}

// runAgent returns the agent that a RUN_STARTED names, "" if it names none.
func runAgent(e *tapedeck.Event) string {
	var d payload.RunStarted
	if !e.Unpack(&d) {
		return ""
	}
	if name := tapedeck.MetaOf(d.Metadata).Agent; name != "" {
		return name
	}
	name, _ := strings.CutPrefix(e.Actor, "agent:")
	return name
}

// knows reports whether what is open before the first event is noted.
func (r *Reader) knows() bool { return r.asked || r.Before == nil }

// ask notes what is open before the first event. What was noted since is newer.
func (r *Reader) ask() error {
	if r.knows() {
		return nil
	}
	r.asked = true
	s, err := r.Before()
	if err != nil {
		return err
	}
	newer := r.known
	r.known = state{}
	for i := range s.Runs {
		if run := &s.Runs[i]; run.Agent != "" && run.Status == tapedeck.StatusRunning {
			put(&r.known.agents, run.Invocation, run.Agent)
		}
	}
	for i := range s.Calls {
		if k := &s.Calls[i]; k.Result == nil {
			r.known.begin(callKey{k.Thread, k.ID}, k.Name, k.Arguments)
		}
	}
	for i := range s.Messages {
		if m := &s.Messages[i]; m.Role == payload.RoleUser && m.Status == tapedeck.StatusRunning {
			put(&r.known.users, m.ID, true)
		}
	}
	for key, v := range newer.agents {
		put(&r.known.agents, key, v)
	}
	for key, k := range newer.calls {
		r.known.begin(key, k.tool, string(k.args))
	}
	for key, v := range newer.users {
		put(&r.known.users, key, v)
	}
	return nil
}

// put adds an entry, unless there are too many.
func put[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	if _, ok := (*m)[key]; ok || len(*m) < maxNoted {
		(*m)[key] = v
	}
}
