package view

import (
	"cmp"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Snapshot is a conversation as of an offset. It does not change when its
// conversation folds on. As JSON it is the answer of GET
// /sessions/{id}/snapshot.
type Snapshot struct {
	Session  SessionInfo `json:"session"`
	At       int64       `json:"at"`               // the events before this offset are included: continue to read here
	Selected string      `json:"thread,omitempty"` // the requested thread; "" for all
	Threads  []Thread    `json:"threads"`          // the threads, by offset
	Messages []Message   `json:"messages"`
	Calls    []ToolCall  `json:"tool_calls"`
	Runs     []Run       `json:"runs"`

	// Permissions has all pending permissions and the newest of the others.
	Permissions []Permission `json:"permissions,omitempty"`

	// Inputs has the inputs that wait, in the order in which they will run, and the newest
	// of those that have ended, where they were in that order.
	Inputs []Input `json:"inputs,omitempty"`

	Earlier int    `json:"earlier,omitempty"` // number of older messages that are left out; see [Window]
	State   *State `json:"state"`             // the state of the requested thread, or of the main thread; null if there is none
	Plan    *Plan  `json:"plan"`              // like State
	Notes   []Note `json:"notes,omitempty"`
	Unnoted int    `json:"notes_left_out,omitempty"` // number of further notes
}

// Exact returns what s is encoded as for a client that continues with the events after it:
// each text has the half of a character with which it ends. Nearly always that is s itself.
func (s *Snapshot) Exact() any {
	messages, calls := ExactMessages(s.Messages), exactCalls(s.Calls)
	if messages == nil && calls == nil {
		return s
	}
	out := exactSnapshot{Snapshot: s, Messages: s.Messages, Calls: s.Calls}
	if messages != nil {
		out.Messages = messages
	}
	if calls != nil {
		out.Calls = calls
	}
	return out
}

// An exactSnapshot is a snapshot of which a text ends with half of a character.
type exactSnapshot struct {
	*Snapshot
	Messages any `json:"messages"`
	Calls    any `json:"tool_calls"`
}

type exactMessage struct {
	*Message
	Text payload.Piece `json:"text"`
}

type exactCall struct {
	*ToolCall
	Arguments payload.Piece `json:"arguments"`
}

// ExactMessages is [Snapshot.Exact] for messages; nil if no text ends with a half.
func ExactMessages(list []Message) any {
	if !slices.ContainsFunc(list, func(m Message) bool { return m.Half != "" }) {
		return nil
	}
	out := make([]exactMessage, len(list))
	for i := range list {
		out[i] = exactMessage{&list[i], list[i].Pieces()}
	}
	return out
}

func exactCalls(list []ToolCall) any {
	if !slices.ContainsFunc(list, func(k ToolCall) bool { return k.Half != "" }) {
		return nil
	}
	out := make([]exactCall, len(list))
	for i := range list {
		out[i] = exactCall{&list[i], list[i].Pieces()}
	}
	return out
}

// A SessionInfo has what the events say about the session itself.
type SessionInfo struct {
	ID     string            `json:"id,omitempty"` // not in the events; the caller may set it
	Title  string            `json:"title,omitempty"`
	Owner  string            `json:"owner,omitempty"`
	Agent  string            `json:"agent,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Status tapedeck.Status   `json:"status"`
	Closed bool              `json:"closed,omitempty"`
}

// A Thread is one lane of conversation.
type Thread struct {
	Name     string          `json:"name"`
	Parent   string          `json:"parent,omitempty"` // the thread of the parent run
	Offset   int64           `json:"offset"`           // the offset of its first event
	Last     int64           `json:"last_offset"`      // the offset of its newest event
	Messages int             `json:"messages"`         // number of messages
	Status   tapedeck.Status `json:"status"`           // the status of its newest run; without a run idle, or pending once a run is requested
	Link     *Link           `json:"link,omitempty"`   // the agent's own conversation, if it reported one
	Prompt   *Prompt         `json:"prompt,omitempty"` // the system text of its model, if it is stored
}

// A Prompt identifies the system text that the model of a thread gets; see
// [payload.NewPrompt].
type Prompt struct {
	Digest string `json:"digest"`
	Offset int64  `json:"offset"` // the offset of the message that has the text
}

// A Link is the id that an agent gives to its own conversation; see
// [tapedeck.AgentLinked]. What was imported has none.
type Link struct {
	Runner     string `json:"runner"`
	NativeID   string `json:"native_id"`
	Offset     int64  `json:"offset"` // the offset of the event that reported it
	Invocation string `json:"invocation,omitempty"`
}

// Snapshot returns the conversation of all threads.
func (c *Conversation) Snapshot() Snapshot { return c.snapshot("") }

// Thread returns the conversation of one thread, empty if it does not exist. ""
// is [tapedeck.MainThread].
func (c *Conversation) Thread(name string) Snapshot {
	if name == "" {
		name = tapedeck.MainThread
	}
	return c.snapshot(name)
}

func (c *Conversation) snapshot(thread string) Snapshot {
	s := Snapshot{
		Session: c.session.SessionInfo, At: c.next, Selected: thread,
		Threads: []Thread{}, Messages: []Message{}, Calls: []ToolCall{}, Runs: []Run{},
		Unnoted: c.unnoted,
	}
	s.Session.Status = c.status()
	var lanes []*lane
	for _, l := range c.lanes {
		if s.wants(l.Name) {
			lanes = append(lanes, l)
		}
	}
	slices.SortFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, l := range lanes {
		s.Threads = append(s.Threads, l.Thread)
	}
	s.addItems(c, lanes)
	s.Inputs = c.inputsOf(thread)
	for _, n := range c.notes {
		if s.wants(n.Thread) {
			s.Notes = append(s.Notes, n)
		}
	}
	s.addState(c)
	return s
}

func (s *Snapshot) wants(thread string) bool { return s.Selected == "" || s.Selected == thread }

func (s *Snapshot) addItems(c *Conversation, lanes []*lane) {
	var lists []Items
	var permissions [][]Permission
	for _, l := range lanes {
		if c.archive != nil {
			lists = append(lists, c.archive.items(l))
		} else {
			s.Earlier += l.earlier()
		}
		lists = append(lists, l.loaded())
		if len(l.permissions) > 0 {
			permissions = append(permissions, l.loadedPermissions())
		}
	}
	all := joined(lists)
	s.Messages, s.Calls, s.Runs = all.Messages, all.Calls, all.Runs
	if len(permissions) > 0 {
		s.Permissions = merge(permissions, func(p *Permission) int64 { return p.Offset })
	}
}

func (s *Snapshot) addState(c *Conversation) {
	name := s.Selected
	if name == "" {
		name = tapedeck.MainThread
	}
	st, plan := &state{raw: c.session.state, offset: c.session.stateOffset}, (*Plan)(nil)
	if l, ok := c.lanes[name]; ok {
		st, plan = &l.state, l.plan
	}
	s.Plan = plan
	if v := st.value(); v != nil {
		s.State = &State{Offset: st.offset, Thread: name, Invocation: st.invocation, Value: v}
	}
}
