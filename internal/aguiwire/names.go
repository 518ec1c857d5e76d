package aguiwire

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Names has the ids that the messages and calls of a thread have in AG-UI. In the log, an
// id names one message of each [Kind] in a thread and a run, so an agent may use it again in
// its next run, or for its answer to the message with that id, and any number of calls. In
// AG-UI it names one message of a thread: of two with one id, one gets another id, which
// [Rename] makes.
type Names struct {
	messages, calls map[key]string   // the ids in AG-UI
	answers         map[int64]string // the ids of answers of tools, by the offset of the answer
}

// A Kind divides the messages that may share an id, as package view does: those of an agent,
// its reasoning, activities, and all others, which the agent was told.
type Kind string

// The kinds of messages. Calls have none.
const (
	Agent     Kind = payload.RoleAssistant
	Reasoning Kind = payload.RoleReasoning
	Activity  Kind = payload.RoleActivity
	Told      Kind = "told"
)

// KindOf returns the kind of the messages of a role.
func KindOf(role string) Kind {
	switch k := Kind(role); k {
	case Agent, Reasoning, Activity:
		return k
	}
	return Told
}

// A key names a message or a call in a thread.
type key struct {
	invocation string
	kind       Kind
	id         string
	offset     int64 // of a call, and of a message of the kind Told: a run may have several with one id
}

func keyOf(m *view.Message) key {
	k := key{invocation: m.Invocation, kind: KindOf(m.Role), id: m.ID}
	if k.kind == Told {
		k.offset = m.Offset
	}
	return k
}

func callKey(k *view.ToolCall) key { return key{invocation: k.Invocation, id: k.ID, offset: k.Offset} }

// Rename returns another id for a message, a call or an answer that begins at an offset,
// because its own id is in use.
func Rename(id string, offset int64) string { return id + "@" + strconv.FormatInt(offset, 10) }

// NamesOf returns the names in a conversation. Of messages with one id the oldest keeps it,
// because a front end has it already.
func NamesOf(s *view.Snapshot) Names { return namesOf(s, false) }

// namesOf returns the names in a conversation. If newest is true, the newest message of
// each id keeps it.
func namesOf(s *view.Snapshot, newest bool) Names {
	n := Names{answers: map[int64]string{}}
	calls := occurrences{}
	for i := range s.Calls {
		if k := &s.Calls[i]; k.Name != "" {
			calls.note(callKey(k), k.Offset)
		}
	}
	n.calls, _ = calls.names(nil, newest)

	answered := answersOf(s)
	messages := occurrences{}
	for i := range s.Messages {
		if m := &s.Messages[i]; m.Role != payload.RoleTool || !answered[m.ID] {
			messages.note(keyOf(m), m.Offset)
		}
	}
	answers := map[int64]string{}
	for i := range s.Calls {
		k := &s.Calls[i]
		if k.Name == "" {
			continue
		}
		messages.note(n.makerOf(k), k.Offset)
		if k.Result != nil {
			answers[k.Result.Offset] = k.Result.MessageID
		}
	}
	n.messages, n.answers = messages.names(answers, newest)
	return n
}

// answersOf has the ids of messages that answer a call.
func answersOf(s *view.Snapshot) map[string]bool {
	ids := map[string]bool{}
	for i := range s.Calls {
		if k := &s.Calls[i]; k.Name != "" && k.Result != nil {
			ids[k.Result.MessageID] = true
		}
	}
	return ids
}

// makerOf returns the key of the message that makes a call. A client makes one for a call
// without: it gives it the id of the call.
func (n *Names) makerOf(k *view.ToolCall) key {
	return key{invocation: k.Invocation, kind: Agent, id: cmp.Or(k.MessageID, n.Call(k))}
}

// Message returns the id of a message.
func (n *Names) Message(m *view.Message) string {
	if m.Role == payload.RoleTool { // it may be the answer to a call
		return cmp.Or(n.answers[m.Offset], n.messages[keyOf(m)], m.ID)
	}
	return cmp.Or(n.messages[keyOf(m)], m.ID)
}

// Call returns the id of a call.
func (n *Names) Call(k *view.ToolCall) string {
	return cmp.Or(n.calls[callKey(k)], k.ID)
}

// Maker returns the id of the message that makes a call.
func (n *Names) Maker(k *view.ToolCall) string {
	return n.messages[n.makerOf(k)]
}

// LogCall returns the id that a call has in the log.
func (n *Names) LogCall(id string) string {
	for k, name := range n.calls {
		if name == id {
			return k.id
		}
	}
	return id
}

// Answer returns the id of the answer to a call.
func (n *Names) Answer(r *view.ToolResult) string {
	return cmp.Or(n.answers[r.Offset], r.MessageID)
}

// occurrences has the offset at which each message or call begins.
type occurrences map[key]int64

func (o occurrences) note(k key, offset int64) {
	if at, ok := o[k]; k.id != "" && (!ok || offset < at) {
		o[k] = offset
	}
}

// names returns the names of all occurrences, and of answers, which share their ids. An
// answer is one message, whatever id it has.
func (o occurrences) names(answers map[int64]string, newest bool) (names map[key]string, ofAnswers map[int64]string) {
	names, ofAnswers = make(map[key]string, len(o)), make(map[int64]string, len(answers))
	type begin struct {
		offset int64
		key    key
		answer bool
	}
	list := make([]begin, 0, len(o)+len(answers))
	for k, offset := range o {
		list = append(list, begin{offset, k, false})
	}
	for _, offset := range slices.Sorted(maps.Keys(answers)) {
		list = append(list, begin{offset, key{id: answers[offset]}, true})
	}
	slices.SortFunc(list, func(a, b begin) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.key.invocation, b.key.invocation), cmp.Compare(a.key.id, b.key.id), cmp.Compare(a.key.kind, b.key.kind))
	})
	if newest {
		slices.Reverse(list)
	}
	taken := make(map[string]bool, len(list))
	for _, b := range list {
		name := b.key.id
		for taken[name] { // more than once if the agent uses an id that we make
			name = Rename(name, b.offset)
		}
		taken[name] = true
		if b.answer {
			ofAnswers[b.offset] = name
		} else {
			names[b.key] = name
		}
	}
	return names, ofAnswers
}

// Known returns the ids of the messages that a client can have from a conversation. A
// client that has seen only the newest message of an id has it under that id.
func Known(s *view.Snapshot) map[string]bool {
	ids := map[string]bool{}
	for i := range s.Messages {
		ids[s.Messages[i].ID] = true
	}
	for i := range s.Calls {
		k := &s.Calls[i]
		ids[k.ID], ids[k.MessageID] = true, true
		if k.Result != nil {
			ids[k.Result.MessageID] = true
		}
	}
	n := NamesOf(s)
	for _, id := range n.messages {
		ids[id] = true
	}
	for _, id := range n.answers {
		ids[id] = true
	}
	delete(ids, "")
	return ids
}
