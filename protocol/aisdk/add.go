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
		err = h.readJSON(w, r, in)
	}
	if err == nil && in.Run != "" {
		err = tapedeck.CheckID("the run", in.Run)
	}
	if in.agent = r.PathValue("agent"); err == nil && in.Run != "" {
		err = tapedeck.CheckID("the name of the agent", in.agent)
	}
	if err != nil {
		return err
	}
	for tries := 1; ; tries++ {
		done, err := h.addOnce(r.Context(), id, in)
		if tapedeck.RefusalOf(err) == tapedeck.RefusedOffset && tries < maxTries {
			continue // another program has written: what this request means may have changed
		}
		if err != nil {
			return err
		}
		return httpapi.WriteJSON(w, http.StatusOK, done)
	}
}

// maxTries is how often a request is decided again because the session has changed meanwhile.
const maxTries = 10

func (h *handler) addOnce(ctx context.Context, id string, in *input) (done added, err error) {
	head, now, err := h.now(ctx, id)
	if err != nil {
		return done, err
	}
	all := chainsOf(&now)
	if begun, ok := all.of[in.Run]; ok { // the request is repeated
		return begunIn(begun, in.Run, head.Head), nil
	}
	fresh, back, err := in.news(id, &now)
	if err != nil {
		return done, err
	}
	if open, busy := head.Run(tapedeck.MainThread); busy && (len(fresh) > 0 || back != nil || in.Run != "") {
		return done, tapedeck.Errorf(tapedeck.Conflict, "chat %s is busy with %s", id, open.Invocation).
			WithHint("resume its stream, or stop it with POST %s/{agent}/%s/stop", Root, id)
	}
	var continued chain
	if in.Run != "" && back == nil {
		if continued, err = in.continues(&all); err != nil {
			return done, err
		}
	}
	events, err := in.events(fresh, continued)
	if err != nil {
		return done, err
	}
	if back != nil {
		if _, err := h.Verbs.Rewind(ctx, *back); err != nil {
			return done, err
		}
	}
	at := head.Head
	if len(events) > 0 {
		a := tapedeck.Append{Session: id, Events: events}
		if back == nil {
			a.Expect = &head.Head
		}
		got, err := h.append(ctx, a)
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
// among them, and back is the rewind that reverts the old one.
func (in *input) news(session string, now *view.Snapshot) (fresh []payload.Message, back *api.Rewind, err error) {
	if n := len(in.Messages); n > 0 && in.Messages[n-1].Role == payload.RoleUser {
		last := &in.Messages[n-1]
		if asked := findMessage(now, last.ID); asked != nil && in.again(asked, now) {
			fresh, err = last.logged()
			return fresh, &api.Rewind{Session: session, Thread: tapedeck.MainThread, ToOffset: &asked.Offset}, err
		}
	}
	fresh, err = in.fresh(now)
	return fresh, nil, err
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
