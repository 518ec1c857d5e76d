package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A conversation can be stored as JSON and loaded again. Folding on after that
// gives the same views as without the interruption. Settled items are not part
// of the JSON. The format belongs to this version of the program, so store
// [CheckpointForm] with it.

// CheckpointForm is the version of the JSON format of all folds in this
// package.
const CheckpointForm = 17

type savedConversation struct {
	Next    int64        `json:"next"`
	Session savedSession `json:"session"`
	Lanes   []savedLane  `json:"lanes"`
	Inputs  []Input      `json:"inputs,omitempty"`
	Notes   []Note       `json:"notes,omitempty"`
	Unnoted int          `json:"unnoted,omitempty"`
	Earned  int          `json:"earned,omitempty"`
	Spent   int          `json:"spent,omitempty"`
}

type savedSession struct {
	Info   SessionInfo     `json:"info"`
	State  json.RawMessage `json:"state,omitempty"`
	Offset int64           `json:"state_offset,omitempty"`
}

type savedLane struct {
	Thread   Thread            `json:"thread"`
	Messages []savedMessage    `json:"messages,omitempty"`
	Calls    []savedCall       `json:"calls,omitempty"`
	Runs     []savedRun        `json:"runs,omitempty"`
	PastRuns int               `json:"past_runs,omitempty"`
	PastSubs int               `json:"past_subs,omitempty"`
	Waiting  map[string]*Tally `json:"waiting,omitempty"`
	Open     []savedWork       `json:"open,omitempty"`
	Past     [groups]pastGroup `json:"past"`
	Ended    int64             `json:"ended,omitempty"`
	Settled  [2]int64          `json:"settled"` // offsets: calls, runs
	State    savedState        `json:"state"`
	Plan     *Plan             `json:"plan,omitempty"`

	Permissions []*Permission `json:"permissions,omitempty"`
}

type savedMessage struct {
	Message
	Doc   *savedState `json:"doc,omitempty"`   // only for an activity
	Named bool        `json:"named,omitempty"` // whether looking up its name finds it

	Pieces payload.Piece `json:"pieces,omitempty"` // in place of the text, if that has halves of characters
}

type savedCall struct {
	ToolCall
	Complete bool     `json:"complete,omitempty"`
	Named    bool     `json:"named,omitempty"`
	Made     *int64   `json:"made,omitempty"`
	Step     CallStep `json:"step,omitzero"`
	Maker    *int     `json:"maker,omitempty"`      // index of the message that made it
	Role     *string  `json:"maker_role,omitempty"` // the role of that message, if it has settled

	Pieces payload.Piece `json:"pieces,omitempty"` // in place of the arguments, as in savedMessage
}

type savedRun struct {
	*Run
	Tally Tally `json:"tally,omitzero"`
	Sub   bool  `json:"sub,omitempty"`
}

type savedState struct {
	Value      json.RawMessage `json:"value,omitempty"`
	Shared     bool            `json:"shared,omitempty"`
	Offset     int64           `json:"offset,omitempty"`
	Invocation string          `json:"invocation,omitempty"`
}

// A savedWork holds indices into the lane's runs, messages and calls.
type savedWork struct {
	Invocation string `json:"invocation,omitempty"`
	Run        *int   `json:"run,omitempty"`
	Messages   []int  `json:"messages,omitempty"`
	Calls      []int  `json:"calls,omitempty"`
}

// MarshalJSON encodes the state of c, from which UnmarshalJSON restores it.
func (c *Conversation) MarshalJSON() ([]byte, error) {
	s := savedConversation{
		Next: c.next, Notes: c.notes, Unnoted: c.unnoted, Earned: c.budget.earned, Spent: c.budget.spent,
		Inputs:  c.inputs,
		Session: savedSession{c.session.SessionInfo, c.session.state, c.session.stateOffset},
	}
	for _, l := range c.lanes {
		s.Lanes = append(s.Lanes, l.save())
	}
	slices.SortFunc(s.Lanes, func(a, b savedLane) int { return cmp.Compare(a.Thread.Offset, b.Thread.Offset) })
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // raw JSON must come back unchanged
	err := enc.Encode(s)
	return b.Bytes(), err
}

func (l *lane) save() savedLane {
	s := savedLane{Thread: l.Thread, PastRuns: l.pastRuns, PastSubs: l.pastSubs, Waiting: l.waiting, Past: l.past, Settled: [2]int64{l.settledCalls, l.settledRuns}, Ended: l.ended, State: l.state.save(), Plan: l.plan, Permissions: l.permissions}
	messages, calls, runs := map[*message]int{}, map[*call]int{}, map[*Run]int{}
	for _, m := range l.messages.items {
		if !m.removed {
			messages[m] = len(s.Messages)
			s.Messages = append(s.Messages, m.save(l.message[m.name()] == m))
		}
	}
	for _, k := range l.calls.items {
		if k.removed {
			continue
		}
		calls[k] = len(s.Calls)
		saved := savedCall{ToolCall: k.ToolCall, Complete: k.complete, Made: k.Made, Step: k.Step, Named: l.call[k.ID] == k}
		saved.Arguments, saved.Pieces = savedText(k.args.String())
		if i, ok := messages[k.maker]; ok {
			saved.Maker = &i
		} else if k.maker != nil {
			saved.Role = &k.maker.Role
		}
		s.Calls = append(s.Calls, saved)
	}
	for i, r := range l.runs {
		runs[r] = i
		s.Runs = append(s.Runs, savedRun{r, r.Tally, r.Sub})
	}
	for invocation, w := range l.open {
		s.Open = append(s.Open, w.save(invocation, messages, calls, runs))
	}
	slices.SortFunc(s.Open, func(a, b savedWork) int { return cmp.Compare(a.Invocation, b.Invocation) })
	return s
}

func (m *message) save(named bool) savedMessage {
	s := savedMessage{Message: m.Message, Named: named}
	s.Text, s.Pieces = savedText(m.text.String())
	if m.Role == activity {
		doc := m.doc.save()
		s.Doc = &doc
	}
	return s
}

// savedText returns a text for a checkpoint. Encoding pieces takes more time than encoding a
// string, so only texts with halves are stored as pieces.
func savedText(pieces string) (string, payload.Piece) {
	if payload.Whole(pieces) == pieces {
		return pieces, ""
	}
	return "", payload.Piece(pieces)
}

func (s *state) save() savedState { return savedState{s.value(), s.shared, s.offset, s.invocation} }

func (s savedState) restore() state {
	return state{raw: s.Value, shared: s.Shared, offset: s.Offset, invocation: s.Invocation}
}

func (w *work) save(invocation string, messages map[*message]int, calls map[*call]int, runs map[*Run]int) savedWork {
	s := savedWork{Invocation: invocation}
	if i, ok := runs[w.run]; ok {
		s.Run = &i
	}
	for m := range w.messages {
		if i, ok := messages[m]; ok {
			s.Messages = append(s.Messages, i)
		}
	}
	for k := range w.calls {
		if i, ok := calls[k]; ok {
			s.Calls = append(s.Calls, i)
		}
	}
	slices.Sort(s.Messages)
	slices.Sort(s.Calls)
	return s
}

// UnmarshalJSON replaces c with a conversation that MarshalJSON encoded.
func (c *Conversation) UnmarshalJSON(b []byte) error {
	var s savedConversation
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*c = Conversation{next: s.Next, inputs: s.Inputs, notes: s.Notes, unnoted: s.Unnoted, budget: patchBudget{s.Earned, s.Spent}, lanes: map[string]*lane{}}
	c.session = sessionFold{SessionInfo: s.Session.Info, state: s.Session.State, stateOffset: s.Session.Offset}
	i := s.Session.Info
	c.session.entry = tapedeck.Session{Title: i.Title, Owner: i.Owner, Agent: i.Agent, Labels: i.Labels}
	for _, l := range s.Lanes {
		restored, ok := l.restore()
		if !ok {
			return errCheckpoint
		}
		c.lanes[l.Thread.Name] = restored
	}
	c.findOpenRuns()
	return nil
}

// findOpenRuns notes in which lane each invocation has its open run. If there
// are two, the newer one counts.
func (c *Conversation) findOpenRuns() {
	began := map[string]int64{}
	for _, l := range c.lanes {
		for invocation, w := range l.open {
			if w.run != nil && w.run.Offset >= began[invocation] {
				began[invocation] = w.run.Offset
				c.noteOpenRun(l, invocation)
			}
		}
	}
}

var errCheckpoint = tapedeck.Errorf(tapedeck.Internal, "the checkpoint of a conversation is damaged")

func (s *savedLane) restore() (*lane, bool) {
	l := newLane(s.Thread)
	l.past, l.pastRuns, l.pastSubs, l.ended, l.state, l.plan = s.Past, s.PastRuns, s.PastSubs, s.Ended, s.State.restore(), s.Plan
	if s.Waiting != nil {
		l.waiting = s.Waiting
	}
	for _, saved := range s.Runs {
		if saved.Run == nil {
			return nil, false
		}
		saved.Run.Tally, saved.Run.Sub = saved.Tally, saved.Sub
		l.runs = append(l.runs, saved.Run)
		l.newest[saved.Invocation] = saved.Run
	}
	l.settledCalls, l.settledRuns, l.permissions = s.Settled[0], s.Settled[1], s.Permissions
	for _, saved := range s.Messages {
		m := saved.restore()
		l.messages.add(m)
		if saved.Named {
			l.message[m.name()] = m
		}
		g := groupOf(m.Role)
		l.groups[g] = append(l.groups[g], m)
	}
	for _, saved := range s.Calls {
		k := &call{ToolCall: saved.ToolCall, complete: saved.Complete}
		k.args.WriteString(saved.Arguments + string(saved.Pieces))
		k.Made, k.Step = saved.Made, saved.Step
		k.Arguments = ""
		switch {
		case saved.Maker != nil && uint(*saved.Maker) >= uint(len(l.messages.items)):
			return nil, false
		case saved.Maker != nil:
			k.maker = l.messages.items[*saved.Maker]
			k.maker.calls = append(k.maker.calls, k)
		case saved.Role != nil:
			k.maker = &message{Message: Message{Role: *saved.Role}, settled: true}
		}
		l.calls.add(k)
		if saved.Named {
			l.call[k.ID] = k
		}
	}
	for _, w := range s.Open {
		if !l.reopen(w) {
			return nil, false
		}
	}
	return l, true
}

func (s *savedMessage) restore() *message {
	m := &message{Message: s.Message}
	m.text.WriteString(s.Text + string(s.Pieces))
	m.Text = ""
	if s.Doc != nil {
		m.doc = s.Doc.restore()
	}
	return m
}

func (l *lane) reopen(s savedWork) bool {
	w := l.work(s.Invocation)
	if s.Run != nil {
		if uint(*s.Run) >= uint(len(l.runs)) {
			return false
		}
		w.run = l.runs[*s.Run]
	}
	for _, i := range s.Messages {
		if uint(i) >= uint(len(l.messages.items)) {
			return false
		}
		w.messages[l.messages.items[i]] = struct{}{}
	}
	for _, i := range s.Calls {
		if uint(i) >= uint(len(l.calls.items)) {
			return false
		}
		w.calls[l.calls.items[i]] = struct{}{}
	}
	return true
}
