package view

import (
	"github.com/tapedeck/tapedeck/payload"
)

// A Tally counts the messages and calls of an invocation in a thread, so that a
// [Task] keeps its numbers when they have settled.
type Tally struct {
	Text     string `json:"text,omitempty"` // the first text of the user
	Actor    string `json:"actor,omitempty"`
	First    int64  `json:"first,omitempty"` // offset of that message
	Asked    bool   `json:"asked,omitempty"` // whether there is such a message
	Messages int    `json:"messages,omitempty"`
	Calls    int    `json:"calls,omitempty"`
	Begun    int64  `json:"begun,omitempty"` // offset of the first message or call
}

// tally returns the tally of an item's invocation: that of its newest run, or
// one that waits for a run to begin.
func (l *lane) tally(of *Item) *Tally {
	invocation := of.Invocation
	if r := l.newest[invocation]; r != nil {
		return &r.Tally
	}
	t, ok := l.waiting[invocation]
	if !ok {
		if len(l.waiting) >= maxOpen {
			l.dropWaiting()
		}
		t = &Tally{Begun: of.Offset}
		l.waiting[invocation] = t
	}
	return t
}

// dropWaiting drops the oldest tally that waits for a run.
func (l *lane) dropWaiting() {
	oldest := ""
	for invocation, t := range l.waiting {
		if old := l.waiting[oldest]; old == nil || t.Begun < old.Begun || t.Begun == old.Begun && invocation < oldest {
			oldest = invocation
		}
	}
	delete(l.waiting, oldest)
}

// takeTally makes r the newest run of its invocation, and returns the tally so
// far.
func (l *lane) takeTally(r *Run) (t Tally) {
	if old := l.newest[r.Invocation]; old != nil { // its end is missing
		t, old.Tally = old.Tally, Tally{}
	} else if w := l.waiting[r.Invocation]; w != nil {
		t = *w
	}
	delete(l.waiting, r.Invocation)
	l.newest[r.Invocation] = r
	return t
}

// countMessage adds a message to its tally; by is 1, or -1 to remove it.
func (l *lane) countMessage(m *message, by int) {
	if m.Role != reasoning && m.Invocation != "" {
		l.tally(&m.Item).Messages += by
	}
}

// noteRequest notes the first text of the user in an invocation.
func (l *lane) noteRequest(m *message) {
	if m.Role != payload.RoleUser || m.Invocation == "" || m.text.Len() == 0 {
		return
	}
	if t := l.tally(&m.Item); t.Text == "" {
		t.Text, t.Actor, t.First, t.Asked = payload.Whole(m.text.String()), m.Actor, m.Offset, true
	}
}

func (l *lane) countCall(k *call, by int) {
	if k.Invocation != "" {
		l.tally(&k.Item).Calls += by
	}
}
