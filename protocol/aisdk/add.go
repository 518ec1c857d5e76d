package aisdk

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// An added is the answer to a request that adds messages.
type added struct {
	Added int   `json:"added"`
	Head  int64 `json:"head"`

	// Message is the message of the run that has begun, and From the offset of its RUN_STARTED.
	Message string `json:"message,omitempty"`
	From    int64  `json:"from,omitempty"`
}

// addMessages appends the new messages of a front end, for an agent that runs elsewhere. It
// reverts what a run here would revert. With the member run it begins a run, too: both are
// appended or nothing is.
func (h *handler) addMessages(w http.ResponseWriter, r *http.Request) error {
	id, err := chat(r)
	in := new(input)
	if err == nil {
		err = h.readRequest(w, r, in)
	}
	if err == nil && in.Run != "" {
		err = tapedeck.CheckID("the run", in.Run)
	}
	in.ID = id
	if in.agent = r.PathValue("agent"); err == nil && in.Run != "" {
		err = tapedeck.CheckID("the name of the agent", in.agent)
	}
	if err != nil {
		return err
	}
	var done added
	err = h.decide(r.Context(), id, in, func(head *tapedeck.Session, now *view.Snapshot) error {
		done, err = h.addOnce(r.Context(), id, in, head, now)
		return err
	})
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}

func (h *handler) addOnce(ctx context.Context, id string, in *input, head *tapedeck.Session, now *view.Snapshot) (done added, err error) {
	all := chainsOf(now)
	if begun, ok := all.of[in.Run]; ok {
		if !in.repeats(now) {
			return done, tapedeck.Errorf(tapedeck.Conflict, "the chat has a run %s already, which began without these messages", in.Run).
				WithHint("give each run an id of its own")
		}
		return begunIn(begun, in.Run, head.Head), nil
	}
	names := func(m message) bool { return m.ID == in.Run }
	if in.Run != "" && (slices.ContainsFunc(in.Messages, names) || findMessage(now, in.Run) != nil) {
		return done, tapedeck.Errorf(tapedeck.Conflict, "a message of the chat has the id of the run, %.100q", in.Run).WithHint("give each run and each message an id of its own")
	}
	fresh, err := in.news(now)
	if err != nil {
		return done, err
	}
	if open, busy := head.Run(tapedeck.MainThread); busy && (len(fresh) > 0 || in.back != nil || in.Run != "") {
		return done, busyWith(id, &open)
	}
	var continued chain
	if in.Run != "" && in.back == nil {
		if continued, err = in.continues(&all); err != nil {
			return done, err
		}
	}
	events, err := in.events(fresh, continued)
	if err != nil {
		return done, err
	}
	at := head.Head
	if len(events) > 0 {
		a := tapedeck.Append{Session: id, Events: events, Expect: &head.Head}
		var got tapedeck.Appended
		if in.back != nil {
			got, err = h.Verbs.AppendAfter(ctx, *in.back, a)
		} else {
			got, err = h.append(ctx, a)
		}
		if err != nil {
			return done, err
		}
		at = got.Head
	}
	done = added{Added: len(fresh), Head: at}
	if in.Run != "" {
		done.Message, done.From = in.Run, at-1
		if continued != nil {
			done.Message = continued.message()
		}
	}
	return done, nil
}

// maxTries is how often a request is decided again because the session has changed meanwhile.
const maxTries = 10

// decide carries out a request as of one head of its chat, and again if another program has
// written meanwhile: what the request means may have changed. A request that reverts messages
// is refused then if the chat has new ones, because its user has not seen these, unless the new
// ones are those of the request itself, which was sent twice.
func (h *handler) decide(ctx context.Context, id string, in *input, once func(head *tapedeck.Session, now *view.Snapshot) error) error {
	var seen int64
	for tries := 1; ; tries++ {
		head, now, err := h.now(ctx, id)
		if err != nil {
			return err
		}
		if err = h.leaveOut(ctx, in, &head, &now); err != nil {
			return err
		}
		last := int64(0)
		if len(now.Threads) > 0 {
			last = now.Threads[0].Last
		}
		in.overtaken = in.back != nil && last != seen
		seen = last
		if err = once(&head, &now); tapedeck.RefusalOf(err) != tapedeck.RefusedOffset || tries == maxTries {
			return err
		}
	}
}

// busyWith is the error of a request for a chat with an open run.
func busyWith(chat string, open *tapedeck.OpenRun) error {
	return tapedeck.Errorf(tapedeck.Conflict, "chat %s is busy with %s", chat, open.Invocation).
		WithHint("resume its stream, or stop it with POST %s/{agent}/%s/stop", Root, chat)
}

// repeats reports whether a request is the one that has begun its run, sent again: the chat has
// its messages.
func (in *input) repeats(now *view.Snapshot) bool {
	if n := len(in.Messages); n > 0 && in.Messages[n-1].Role == payload.RoleUser {
		last := &in.Messages[n-1]
		asked := findMessage(now, last.ID)
		return asked != nil && last.says(asked) && (asked.Invocation == in.Run || in.Trigger != regenerate)
	}
	fresh, err := in.fresh(now)
	return err == nil && len(fresh) == 0
}

// begunIn is the answer to the repetition of a request that has begun a run.
func begunIn(c chain, run string, head int64) added {
	i := slices.IndexFunc(c, func(r *view.Run) bool { return r.Invocation == run })
	return added{Head: head, Message: c.message(), From: c[i].Offset}
}

// continues returns the message that the run of a request continues, nil if it begins one: as
// in the AI SDK, a request whose last message is one of the assistant continues that message.
func (in *input) continues(all *chains) (chain, error) {
	n := len(in.Messages)
	if n == 0 || in.Messages[n-1].Role != payload.RoleAssistant {
		return nil, nil
	}
	c := all.of[in.Messages[n-1].ID]
	switch {
	case c == nil:
		return nil, nil
	case c.message() != all.last.message():
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the chat has newer messages than %.100q", in.Messages[n-1].ID).WithHint("load the messages of the chat")
	}
	answers := in.answers()
	waits := func(a approval) bool { return asks(c.last(), a.id) }
	if len(answers) > 0 && !slices.ContainsFunc(answers, waits) {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the question %.100q waits for no answer", answers[0].id).WithHint("load the messages of the chat")
	}
	return c, nil
}

// events returns what a request appends: its new messages, and the beginning of its run.
func (in *input) events(fresh []payload.Message, continued chain) (events []tapedeck.Event, err error) {
	for i := range fresh {
		if err := fresh[i].Check(); err != nil {
			return nil, err
		}
		e := payload.NewEvent(payload.MessageAdded{Message: fresh[i]})
		e.Invocation = in.Run
		events = append(events, e)
	}
	if in.Run == "" {
		return events, nil
	}
	begin := payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: in.Run}
	ours := tapedeck.Meta{Agent: in.agent}
	if in.LeaseMS != nil {
		if err := json.Unmarshal(in.LeaseMS, &ours.LeaseMS); err != nil || ours.LeaseMS == 0 {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "leaseMs is a whole number of milliseconds, not %.40s", in.LeaseMS)
		}
	}
	begin.Metadata = ours.In(nil)
	if continued != nil {
		begin.ParentRunID = continued.last().Invocation
	}
	e := payload.NewEvent(begin)
	e.Invocation, e.Actor = in.Run, "agent:"+in.agent
	return append(events, e), nil
}

// news returns the messages that the log does not have. If the last message is a user's that
// the log has and the client wants another answer to it, or has edited it, that message is
// among them, and in.back is the rewind that reverts the old one.
func (in *input) news(now *view.Snapshot) (fresh []payload.Message, err error) {
	if n := len(in.Messages); n > 0 && in.Messages[n-1].Role == payload.RoleUser {
		last := &in.Messages[n-1]
		if asked := findMessage(now, last.ID); asked != nil && in.again(asked, now) {
			return in.replace(asked)
		}
	}
	return in.fresh(now)
}

// replace returns the last message of a request, which replaces one that the log has, and sets
// the rewind that reverts that one.
func (in *input) replace(asked *view.Message) ([]payload.Message, error) {
	if in.overtaken {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "chat %s has changed meanwhile", in.ID).WithHint("load its messages, and send the request again")
	}
	in.back = &api.Rewind{Session: in.ID, Thread: tapedeck.MainThread, ToOffset: &asked.Offset}
	return in.Messages[len(in.Messages)-1].logged()
}

// again reports whether a message that the log has must be answered again. A request that is
// sent twice is no such wish, unless the answer to the first one is not whole.
func (in *input) again(asked *view.Message, now *view.Snapshot) bool {
	if in.Trigger == regenerate || !in.Messages[len(in.Messages)-1].says(asked) {
		return true
	}
	for i := range now.Runs {
		if run := &now.Runs[i]; run.Offset > asked.Offset {
			return run.Status != tapedeck.StatusRunning && run.Status != tapedeck.StatusComplete
		}
	}
	return false
}
