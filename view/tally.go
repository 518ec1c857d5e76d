package view

import (
	"github.com/tapedeck/tapedeck/payload"
)

// A Tally is what the messages and calls of an invocation amount to in a thread:
// so a [Task] is known when they are not at hand any more.
type Tally struct {
	Text     string `json:"text,omitempty"` // what the user said first
	Actor    string `json:"actor,omitempty"`
	First    int64  `json:"first,omitempty"` // the offset of that message
	Asked    bool   `json:"asked,omitempty"` // there is one
	Messages int    `json:"messages,omitempty"`
	Calls    int    `json:"calls,omitempty"`
	Begun    int64  `json:"begun,omitempty"` // the offset of the first of all these
}

// tally returns the tally of an item's invocation. It is that of its newest run;
// before that has begun it waits.
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

// dropWaiting drops the oldest tally whose run nobody has begun.
func (l *lane) dropWaiting() {
	oldest := ""
	for invocation, t := range l.waiting {
		if old := l.waiting[oldest]; old == nil || t.Begun < old.Begun || t.Begun == old.Begun && invocation < oldest {
			oldest = invocation
		}
	}
	delete(l.waiting, oldest)
}

// takeTally makes r the newest run of its invocation, and returns its tally so
// far.
func (l *lane) takeTally(r *Run) (t Tally) {
	if old := l.newest[r.Invocation]; old != nil { // its end was lost
		t, old.Tally = old.Tally, Tally{}
	} else if w := l.waiting[r.Invocation]; w != nil {
		t = *w
	}
	delete(l.waiting, r.Invocation)
	l.newest[r.Invocation] = r
	return t
}

// count counts a message, or takes it away again.
func (l *lane) count(m *message, by int) {
	if m.Role != reasoning && m.Invocation != "" {
		l.tally(&m.Item).Messages += by
	}
}

// asks notes what a user has said, if it is the first.
func (l *lane) asks(m *message) {
	if m.Role != payload.RoleUser || m.Invocation == "" || m.text.Len() == 0 {
		return
	}
	if t := l.tally(&m.Item); t.Text == "" {
		t.Text, t.Actor, t.First, t.Asked = m.text.String(), m.Actor, m.Offset, true
	}
}

func (l *lane) countCall(k *call, by int) {
	if k.Invocation != "" {
		l.tally(&k.Item).Calls += by
	}
}
