package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/view"
)

// maxTask is the longest task, in bytes.
const maxTask = 1 << 20

// Start gives a task to an agent. It returns as soon as the beginning of the run is
// durable; the run then does not depend on ctx. A thread with an open run is a
// [tapedeck.Conflict]. If the newest run of the thread was cancelled, interrupted or
// failed, the agent gets that as context before the user's words. If it was cancelled
// before the agent had begun, the task is [tapedeck.Invalid].
func (e *Engine) Start(ctx context.Context, t api.Task) (api.Started, error) {
	if err := checkTask(&t); err != nil {
		return api.Started{}, err
	}
	if err := ctx.Err(); err != nil {
		return api.Started{}, err
	}
	// A client that disconnects during a commit must not leave an open run that
	// no engine drives.
	ctx = context.WithoutCancel(ctx)
	if t.Session == "" {
		return e.startNew(ctx, t)
	}
	if err := e.notImported(t.Session); err != nil {
		return api.Started{}, err
	}
	start := e.start
	if t.When != "" && t.When != api.WhenNow {
		start = func(ctx context.Context, t api.Task, _ bool) (api.Started, error) { return e.startOrQueue(ctx, t) }
	}
	started, err := start(ctx, t, false)
	if !t.Create || tapedeck.KindOf(err) != tapedeck.NotFound {
		return started, err
	}
	switch _, known := e.session(ctx, t.Session); {
	case known == nil: // something else was not found, such as the agent; or another task has just created it
		return start(ctx, t, false)
	case tapedeck.KindOf(known) != tapedeck.NotFound:
		return started, known
	}
	return e.startNew(ctx, t)
}

func checkTask(t *api.Task) error {
	switch {
	case strings.TrimSpace(t.Text) == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the task is empty")
	case len(t.Text) > maxTask:
		return tapedeck.Errorf(tapedeck.TooLarge, "the task has %d bytes; at most %d are allowed", len(t.Text), maxTask)
	case !utf8.ValidString(t.Text):
		return tapedeck.Errorf(tapedeck.Invalid, "the task is not valid UTF-8")
	case payload.IsSubThread(t.Thread):
		return tapedeck.Errorf(tapedeck.Conflict, "thread %.128q belongs to a sub-agent; only the agent that started it can continue it", t.Thread).
			WithHint("give the task to the thread of that agent")
	}
	return cmp.Or(checkWhen(t), checkOverwrite(t), checkBudget(t), tapedeck.CheckName("the id of the message", t.MessageID), checkOptional("the thread", t.Thread), checkOptional("the run", t.Invocation), checkMessages(t.Messages))
}

// checkOverwrite checks what a task replaces.
func checkOverwrite(t *api.Task) error {
	switch o := t.Overwrite; {
	case o == nil:
		return nil
	case t.Session == "":
		return tapedeck.Errorf(tapedeck.Invalid, "a task in a new session has nothing to overwrite")
	case t.When != "" && t.When != api.WhenNow:
		return tapedeck.Errorf(tapedeck.Invalid, "a task that may wait overwrites nothing")
	case o.Actor != "":
		return tapedeck.Errorf(tapedeck.Invalid, "the actor of an overwrite in a task is that of the task")
	case o.Thread != "" && o.Thread != cmp.Or(t.Thread, tapedeck.MainThread):
		return tapedeck.Errorf(tapedeck.Invalid, "a task on thread %.128q cannot overwrite thread %.128q", cmp.Or(t.Thread, tapedeck.MainThread), o.Thread)
	default:
		return checkOptional("the thread", o.Thread)
	}
}

// checkOptional checks an id that may be empty.
func checkOptional(what, id string) error {
	if id == "" {
		return nil
	}
	return tapedeck.CheckID(what, id)
}

// checkMessages checks the messages that a client sends with a task. An activity is
// what a front end shows; clients never send it.
func checkMessages(list []payload.Message) error {
	for i := range list {
		if err := list[i].Check(); err != nil {
			return err
		}
		if list[i].Role == payload.RoleActivity {
			return tapedeck.Errorf(tapedeck.Invalid, "a task cannot have a message of the role %s", payload.RoleActivity)
		}
	}
	return nil
}

// startNew also creates the session, with the id of the task if that has one. It
// deletes the session again if the run cannot start, unless another task has begun a
// run there meanwhile.
func (e *Engine) startNew(ctx context.Context, t api.Task) (api.Started, error) {
	agent, err := e.agent(t.Agent)
	if err != nil {
		return api.Started{}, err
	}
	if t.Title == "" {
		t.Title = titleOf(t.Text)
	}
	named := t.Session != ""
	s, err := e.Create(ctx, api.NewSession{ID: t.Session, Title: t.Title, Owner: t.Owner, Agent: agent.Name, Actor: t.Actor})
	if named && tapedeck.KindOf(err) == tapedeck.Conflict { // another task has just created it
		return e.start(ctx, t, false)
	}
	if err != nil {
		return api.Started{}, err
	}
	t.Session = s.ID
	started, err := e.start(ctx, t, false)
	if err != nil {
		_ = e.removeUnused(ctx, &s) // the error of the start is the one that counts
	}
	return started, err
}

// titleOf returns the first line of a text as a title, "" if that is not valid.
func titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if r := []rune(line); len(r) > 80 {
		line = string(r[:79]) + "…"
	}
	if tapedeck.CheckName("the title", line) != nil {
		return ""
	}
	return line
}

// start starts a task in a session. resume means that the run must resume the newest
// run of its thread.
func (e *Engine) start(ctx context.Context, t api.Task, resume bool) (api.Started, error) {
	if t.Thread == "" {
		t.Thread = tapedeck.MainThread
	}
	for try := range maxTries {
		s, err := e.session(ctx, t.Session)
		if err != nil {
			return api.Started{}, err
		}
		if err := e.checkStart(ctx, &s, &t); err != nil {
			return api.Started{}, err
		}
		back, err := e.replaced(ctx, &s, &t, try)
		if err != nil {
			return api.Started{}, err
		}
		r, err := e.prepareRun(ctx, back.leaves(&s), &t, resume)
		if err != nil && t.MessageID != "" {
			return e.repeated(ctx, &s, &t, err)
		}
		if err != nil {
			return api.Started{}, err
		}
		started, err := e.begin(ctx, r, t, &s, back)
		if !errors.Is(err, errMoved) {
			return started, err
		}
	}
	return api.Started{}, tapedeck.Errorf(tapedeck.Unavailable, "session %s is constantly rewound by others", t.Session).WithHint("try again")
}

// checkStart refuses what could not be stored as the session is now, before it looks further.
func (e *Engine) checkStart(ctx context.Context, s *tapedeck.Session, t *api.Task) error {
	if s.Closed {
		return closed(s)
	}
	if err := store.CheckExpected(s, t.Expect); err != nil {
		return err
	}
	if err := e.checkAgent(ctx, s, t); err != nil {
		return err
	}
	return e.checkUnused(ctx, t)
}

// checkAgent refuses an agent that neither the server nor the session knows. What is for an
// outside program is refused later, with a better reason: see chooseAgent.
func (e *Engine) checkAgent(ctx context.Context, s *tapedeck.Session, t *api.Task) error {
	if away, err := e.isAway(ctx, s, t.Thread, t.Agent); away || err != nil {
		return err
	}
	_, err := e.agent(t.Agent)
	return err
}

// checkUnused refuses the id of a run that the session has used. Of two tasks that
// begin at once with the same id, the verifier of the order refuses one.
func (e *Engine) checkUnused(ctx context.Context, t *api.Task) error {
	if t.Invocation == "" {
		return nil
	}
	_, used, err := e.views.FindInvocation(ctx, t.Session, t.Invocation)
	if err == nil && used {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s has a run %s already", t.Session, t.Invocation).WithHint("every run needs an id of its own")
	}
	return err
}

// begin begins a run, if the session was not rewound since seen was read. back is the
// rewind that comes before it, nil for none.
func (e *Engine) begin(ctx context.Context, r *run, t api.Task, seen *tapedeck.Session, back *replacement) (api.Started, error) {
	if err := e.register(r); err != nil {
		return api.Started{}, err
	}
	if e.options.Trace != nil {
		r.trace = e.options.Trace(ctx)
	}
	a := tapedeck.Append{Session: t.Session, Events: back.before(r.opening(t)), Expect: t.Expect}
	if t.MessageID != "" {
		a.Producer = &tapedeck.Producer{ID: messageProducer + t.MessageID}
	}
	e.foldersMu.RLock()
	done, err := e.write(ctx, a, func(s *tapedeck.Session, _ []tapedeck.Event) error {
		if s.Gen != seen.Gen || s.LastJump != seen.LastJump {
			return errMoved
		}
		if err := cmp.Or(checkThreadFree(s, r.in.Thread), back.check(s)); err != nil || t.Queued == "" {
			return err
		}
		return checkWaits(s, t.Queued)
	})
	e.foldersMu.RUnlock()
	if err != nil || done.Duplicate {
		e.unregister(r)
	}
	switch {
	case err != nil:
		return api.Started{}, err
	case done.Duplicate && t.Queued != "":
		return api.Started{}, tapedeck.Errorf(tapedeck.Conflict, "another run of session %s has the message %q", t.Session, t.MessageID)
	case done.Duplicate:
		return e.startedBefore(ctx, &t, done.First)
	}
	first := done.First + back.len()
	r.offset, r.upTo = first, done.Next
	if r.asked == nil {
		r.heard = first + int64(len(earlier(t.Messages)))
	}
	go r.drive()
	started := api.Started{Session: t.Session, Invocation: r.in.ID, Status: tapedeck.StatusRunning, Offset: first}
	if back != nil {
		started.Marker = back.marker
	}
	return started, nil
}

// messageProducer begins the id of the producer that appends the beginning of a run
// whose user's message has an id of the client. So the store refuses a second append
// of that message in its own transaction.
const messageProducer = "message "

// repeated returns the run that a message has begun, for a thread that accepts no new
// run now. refused is the reason, which is the error for any other message.
func (e *Engine) repeated(ctx context.Context, s *tapedeck.Session, t *api.Task, refused error) (api.Started, error) {
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: t.Thread})
	if err != nil {
		return api.Started{}, err
	}
	for i := range now.Messages {
		if m := &now.Messages[i]; m.ID == t.MessageID && m.Role == payload.RoleUser {
			return e.startedBefore(ctx, t, m.Offset)
		}
	}
	return api.Started{}, refused
}

// startedBefore returns the run that began with a message at or shortly after an
// offset.
func (e *Engine) startedBefore(ctx context.Context, t *api.Task, offset int64) (api.Started, error) {
	p, err := e.store.Read(ctx, t.Session, tapedeck.Range{From: offset, Limit: 4}) // a system text, and the start of an input, may come before it
	if err != nil {
		return api.Started{}, err
	}
	for _, rec := range p.Records {
		ev, err := rec.Event()
		if err != nil {
			return api.Started{}, err
		}
		var d payload.MessageAdded
		if ev.Type != tapedeck.MessageAdded || json.Unmarshal(ev.Data, &d) != nil || d.Message.ID != t.MessageID {
			continue
		}
		if d.Message.Text() == t.Text {
			return api.Started{Session: t.Session, Invocation: ev.Invocation, Status: tapedeck.StatusRunning, Offset: ev.Offset, Repeated: true}, nil
		}
	}
	return api.Started{}, tapedeck.Errorf(tapedeck.Conflict, "session %s has another message with the id %q", t.Session, t.MessageID).
		WithHint("give each message an id of its own")
}

// checkThreadFree refuses a thread that has an open run.
func checkThreadFree(s *tapedeck.Session, thread string) error {
	if other, busy := s.Run(thread); busy {
		return tapedeck.Errorf(tapedeck.Conflict, "thread %s is busy with %s", thread, other.Invocation).
			WithHint("wait for it, cancel it, or use another thread; with when=queue the task waits for it")
	}
	return nil
}

// register makes the run known before it begins, so that a shutdown or a cancel that
// arrives meanwhile finds it.
func (e *Engine) register(r *run) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return tapedeck.Errorf(tapedeck.Unavailable, "the server is stopping").WithHint("try again in a moment")
	}
	e.runs[r.in.ID] = r
	e.wg.Add(1) // not later: Shutdown may already wait when the run begins
	return nil
}

// inBackground calls f in a goroutine for which Shutdown waits, unless that has begun. f ends
// with the life of the engine.
func (e *Engine) inBackground(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closing {
		e.wg.Go(f)
	}
}

// unregister removes a run that has ended.
func (e *Engine) unregister(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.runs, r.in.ID)
	if r.settled != nil {
		r.settled()
	}
	close(r.done)
	e.wg.Done()
}
