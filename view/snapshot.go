package view

import (
	"cmp"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Snapshot is a conversation as it stands at an offset. It does not change
// when its conversation goes on. As JSON it is what GET /sessions/{id}/snapshot
// answers.
type Snapshot struct {
	Session  SessionInfo `json:"session"`
	At       int64       `json:"at"`               // the events before this offset are in it: read on from here
	Selected string      `json:"thread,omitempty"` // the thread that was asked for; "" for all
	Threads  []Thread    `json:"threads"`          // in the order of their first events
	Messages []Message   `json:"messages"`
	Calls    []ToolCall  `json:"tool_calls"`
	Runs     []Run       `json:"runs"`

	// Permissions are what agents have asked people: what is open, and the newest
	// of what is not.
	Permissions []Permission `json:"permissions,omitempty"`

	Earlier int    `json:"earlier,omitempty"` // messages that were before these, and are not here; see [Window]
	State   *State `json:"state"`             // of the thread, else of the main one; null for none
	Plan    *Plan  `json:"plan"`              // likewise
	Notes   []Note `json:"notes,omitempty"`
	Unnoted int    `json:"notes_left_out,omitempty"` // how many more notes there would be
}

// SessionInfo is what the events say of the session itself.
type SessionInfo struct {
	ID     string            `json:"id,omitempty"` // events do not tell; who folds may set it
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
	Parent   string          `json:"parent,omitempty"` // the thread whose agent has started the one here
	Offset   int64           `json:"offset"`           // of its first event
	Last     int64           `json:"last_offset"`      // of its newest
	Messages int             `json:"messages"`         // how many
	Status   tapedeck.Status `json:"status"`           // of its newest run; if it had none, idle, or pending once one is asked for
	Link     *Link           `json:"link,omitempty"`   // the agent's own conversation, if it has told one
	Prompt   *Prompt         `json:"prompt,omitempty"` // the system text of its model, if one is stored
}

// A Prompt says which system text the model of a thread gets; see
// [payload.NewPrompt].
type Prompt struct {
	Digest string `json:"digest"`
	Offset int64  `json:"offset"` // of the message that has the text
}

// A Link names the conversation of an agent in its own words; see
// [tapedeck.AgentLinked].
type Link struct {
	Runner     string `json:"runner"`
	NativeID   string `json:"native_id"`
	Offset     int64  `json:"offset"` // of the event that told it
	Invocation string `json:"invocation,omitempty"`
}

// Snapshot returns the conversation of all threads.
func (c *Conversation) Snapshot() Snapshot { return c.snapshot("") }

// Thread returns the conversation of one thread; one that does not exist is
// empty. "" is [tapedeck.MainThread].
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
			lists = append(lists, c.archive.of(l))
		} else {
			s.Earlier += l.earlier()
		}
		lists = append(lists, l.atHand())
		if len(l.permissions) > 0 {
			permissions = append(permissions, l.permissionsAtHand())
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
