package view

import "github.com/tapedeck/tapedeck"

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
	State    *State      `json:"state"` // of the thread, else of the main one; null for none
	Plan     *Plan       `json:"plan"`  // likewise
	Notes    []Note      `json:"notes,omitempty"`
	Unnoted  int         `json:"notes_left_out,omitempty"` // how many more notes there would be
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
	Offset   int64           `json:"offset"`      // of its first event
	Last     int64           `json:"last_offset"` // of its newest
	Messages int             `json:"messages"`    // how many
	Status   tapedeck.Status `json:"status"`      // of its newest run; idle if it had none
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
	if s.Session.Status == "" {
		s.Session.Status = tapedeck.StatusIdle
	}
	for _, l := range c.order {
		if s.wants(l.Name) {
			s.Threads = append(s.Threads, l.Thread)
		}
	}
	s.addItems(c)
	for _, n := range c.notes {
		if s.wants(n.Thread) {
			s.Notes = append(s.Notes, n)
		}
	}
	s.addState(c)
	return s
}

func (s *Snapshot) wants(thread string) bool { return s.Selected == "" || s.Selected == thread }

func (s *Snapshot) addItems(c *Conversation) {
	for _, m := range c.messages.items {
		if !m.gone && s.wants(m.Thread) {
			v := m.Message
			v.Text = m.text.String()
			v.Content = m.doc.value()
			s.Messages = append(s.Messages, v)
		}
	}
	for _, k := range c.calls.items {
		if !k.gone && s.wants(k.Thread) {
			v := k.ToolCall
			v.Arguments, v.Input = k.args.String(), k.input()
			s.Calls = append(s.Calls, v)
		}
	}
	for _, r := range c.runs {
		if s.wants(r.Thread) {
			s.Runs = append(s.Runs, *r)
		}
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
