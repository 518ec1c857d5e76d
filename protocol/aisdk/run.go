package aisdk

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// continueTask is the task of a run without new words of the user, such as one that
// brings the answer of a tool in the front end.
const continueTask = "Continue where you left off."

// noText is the task if the message of the user has only attachments.
const noText = "(a message without text)"

// run starts a run, or gives answers to a run that waits for them, and streams it.
func (h *handler) run(w http.ResponseWriter, r *http.Request) error {
	in, err := h.readInput(w, r)
	if err != nil {
		return err
	}
	var s *stream
	var at int64 // where the message of the stream begins
	err = h.decide(r.Context(), in.ID, in, func(head *tapedeck.Session, now *view.Snapshot) error {
		if answers := in.answers(); len(answers) > 0 {
			run, from, err := h.answer(r.Context(), in, now, answers)
			if err != nil {
				return err
			}
			s, at = h.newStream(w, in.version, in.ID, run.Invocation), run.Offset
			s.from = from
			return nil
		}
		if repeated, from := in.repeated(now); repeated != "" {
			s, at = h.newStream(w, in.version, in.ID, repeated), from
			return nil
		}
		if open, busy := head.Run(tapedeck.MainThread); busy {
			return busyWith(in.ID, &open)
		}
		task, err := taskOf(in, head, now)
		if err != nil {
			return err
		}
		started, err := h.Verbs.Start(r.Context(), task)
		if err == nil {
			s, at = h.newStream(w, in.version, in.ID, started.Invocation), started.Offset
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.follow(r, at)
}

// now returns a session and its conversation as of one offset, both empty if it does
// not exist.
func (h *handler) now(ctx context.Context, id string) (tapedeck.Session, view.Snapshot, error) {
	head, err := h.head(ctx, id)
	if tapedeck.KindOf(err) == tapedeck.NotFound && head.Kind == "" {
		return tapedeck.Session{}, view.Snapshot{}, nil
	}
	if err != nil {
		return head, view.Snapshot{}, err
	}
	now, err := h.Views.Snapshot(ctx, id, view.Query{At: &head.Head, Thread: tapedeck.MainThread, Limit: pageMessages})
	return head, now, err
}

// repeated returns the run that a repetition of a request has started before, and the
// offset at which to follow it; "" if the request is new. A proxy or a reloaded page can
// send a request twice. A run that did not complete is not what its user wants again.
func (in *input) repeated(now *view.Snapshot) (string, int64) {
	n := len(in.Messages)
	if in.Trigger != submit || n == 0 || in.Messages[n-1].Role != payload.RoleUser {
		return "", 0
	}
	asked := findMessage(now, in.Messages[n-1].ID)
	if asked == nil || asked.Invocation == "" || !in.Messages[n-1].says(asked) {
		return "", 0
	}
	run := runOf(now, asked.Invocation)
	if run == nil || run.Status != tapedeck.StatusRunning && run.Status != tapedeck.StatusComplete {
		return "", 0
	}
	return run.Invocation, run.Offset
}

// says reports whether a message of the client has the text of one in the log.
func (m *message) says(in *view.Message) bool {
	list, err := m.logged()
	return err == nil && len(list) == 1 && list[0].Text() == in.Text
}

func findMessage(now *view.Snapshot, id string) *view.Message {
	for i := range slices.Backward(now.Messages) {
		if now.Messages[i].ID == id && now.Messages[i].Role == payload.RoleUser {
			return &now.Messages[i]
		}
	}
	return nil
}

// taskOf returns the task that a request means. If the last message is a user's that
// the log has, the client wants another answer to it, or has edited it: a rewind, which
// can be undone, reverts the old one.
func taskOf(in *input, head *tapedeck.Session, now *view.Snapshot) (t api.Task, err error) {
	t = api.Task{Session: in.ID, Thread: tapedeck.MainThread, Agent: in.agent, Create: true, Text: continueTask, Config: in.Config}
	n := len(in.Messages)
	if n == 0 {
		return t, tapedeck.Errorf(tapedeck.Invalid, "the request has no messages")
	}
	if asked := findMessage(now, in.Messages[n-1].ID); in.Messages[n-1].Role == payload.RoleUser && asked != nil {
		t.Messages, err = in.replace(asked)
		t.Rewind, t.Expect = in.back, &head.Head
	} else {
		t.Messages, err = in.fresh(now)
	}
	if err != nil {
		return t, err
	}
	if len(t.Messages) == 0 {
		return t, tapedeck.Errorf(tapedeck.Invalid, "the request has no new message for the agent").
			WithHint("send a message of the user, or the output of a tool, that the chat does not have")
	}
	if m := &t.Messages[len(t.Messages)-1]; m.Role == payload.RoleUser {
		t.Text = cmp.Or(string(bytes.TrimSpace([]byte(m.Text()))), noText)
	}
	return t, nil
}

// fresh returns what the chat does not have: the outputs of tools that the front end
// ran, and the messages after the newest one that the chat has.
func (in *input) fresh(now *view.Snapshot) (list []payload.Message, err error) {
	all, known := chainsOf(now), knownIDs(now)
	after := known.end(in.Messages)
	for i := range in.Messages[:after] {
		list = append(list, outputs(&in.Messages[i], now, &all)...)
	}
	seen := map[string]bool{}
	for i := range in.Messages[after:] {
		m := &in.Messages[after+i]
		switch {
		case known.users[m.ID] || known.others[m.ID]:
			return nil, tapedeck.Errorf(tapedeck.Conflict, "the chat has another message with the id %.100q", m.ID).WithHint("give each message an id of its own")
		case seen[m.ID]:
			return nil, tapedeck.Errorf(tapedeck.Invalid, "two new messages have the id %.100q", m.ID).WithHint("give each message an id of its own")
		}
		seen[m.ID] = true
		more, err := m.logged()
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// A knownSet has the ids of the messages that a client can have from a chat.
type knownSet struct{ users, others map[string]bool }

func knownIDs(now *view.Snapshot) knownSet {
	k := knownSet{map[string]bool{}, aguiwire.Known(now)}
	for i := range now.Messages {
		if m := &now.Messages[i]; m.Role == payload.RoleUser {
			k.users[m.ID] = true
			delete(k.others, m.ID)
		}
	}
	for i := range now.Runs {
		k.others[now.Runs[i].Invocation] = true
	}
	return k
}

// has reports whether the chat has the message of a client.
func (k *knownSet) has(m *message) bool {
	if m.Role == payload.RoleUser {
		return k.users[m.ID]
	}
	return k.others[m.ID]
}

// end returns the index after the newest message that the chat has.
func (k *knownSet) end(list []message) int {
	for i := range slices.Backward(list) {
		if k.has(&list[i]) {
			return i + 1
		}
	}
	return 0
}

// leaveOut removes from a request what an earlier attempt of a step said. It refuses
// messages that the chat has reverted. A last message of a user is what the request wants, so
// it may be one of these: an edit keeps its id.
func (h *handler) leaveOut(ctx context.Context, in *input, head *tapedeck.Session, now *view.Snapshot) error {
	if head.LastJump == 0 {
		return nil
	}
	known := knownIDs(now)
	after, end := known.end(in.Messages), len(in.Messages)
	if end > after && in.Messages[end-1].Role == payload.RoleUser {
		end--
	}
	var ids []string
	for i := after; i < end; i++ {
		ids = append(ids, in.Messages[i].ID)
	}
	past := aguiwire.Past{
		Head: head, Thread: tapedeck.MainThread, Events: h.Sessions, Timelines: h.Views,
		What: "chat " + in.ID, Hint: "load the messages of the chat",
	}
	repeated, err := past.Repeated(ctx, ids, nil)
	if err != nil || len(repeated) == 0 {
		return err
	}
	fresh := slices.DeleteFunc(slices.Clone(in.Messages[after:end]), func(m message) bool { return repeated[m.ID] })
	in.Messages = slices.Concat(in.Messages[:after], fresh, in.Messages[end:])
	return nil
}

// outputs returns the outputs in a message for calls that have no answer in the log.
func outputs(m *message, now *view.Snapshot, all *chains) (list []payload.Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		answer, ok := p.answer()
		open := slices.ContainsFunc(now.Calls, func(k view.ToolCall) bool {
			return k.ID == p.ToolCallID && k.Result == nil && all.message(k.Invocation) == m.ID && k.Status != tapedeck.StatusCancelled && k.Status != tapedeck.StatusInterrupted
		})
		if p.tool() != "" && ok && open {
			list = append(list, answer)
		}
	}
	return list
}
