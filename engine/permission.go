package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// Outcomes of a question.
const (
	outcomeSelected  = "selected"
	outcomeCancelled = "cancelled"
)

// questions has the questions that the agent of a run has asked people.
type questions struct {
	mu      sync.Mutex
	list    []*question // a map takes 250 bytes, and most runs ask little
	waiting int         // how many answers the agent waits for
}

// A question is one permission of a run that this engine drives.
type question struct {
	run *run
	tapedeck.Question
	scope  string        // of a question of a budget: whose it is
	posted bool          // the runner does not wait for the answer; it takes it from its inbox
	asked  chan struct{} // closed when the log has the question
	offset int64         // of the question, once asked is closed
	chosen chan struct{} // closed when answer is set

	mu     sync.Mutex // held while an answer is appended, so that of several answers one is accepted
	answer *tapedeck.Choice
	logged bool // the log has the answer
}

func (q *question) isAsked() bool { return isDone(q.asked) }

// hasChoice reports whether somebody has chosen an option. The log has it then.
func (q *question) hasChoice() bool { return isDone(q.chosen) && q.answer.Option != "" }

func isDone(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// get returns the question with an id, nil if there is none.
func (s *questions) get(id string) *question {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(id); i >= 0 {
		return s.list[i]
	}
	return nil
}

// all returns the questions, sorted by id.
func (s *questions) all() []*question {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.list)
	slices.SortFunc(out, func(a, b *question) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// register adds a question. It reports false if its id is taken: an agent may use an id again
// only when somebody has chosen an option. What cancels a question may not be in the log yet.
func (s *questions) register(q *question) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(q.ID)
	switch {
	case i < 0:
		s.list = append(s.list, q)
	case s.list[i].hasChoice():
		s.list[i] = q
	default:
		return false
	}
	return true
}

// find returns the index of the question with an id, -1 if there is none. The caller holds
// mu.
func (s *questions) find(id string) int {
	return slices.IndexFunc(s.list, func(q *question) bool { return q.ID == id })
}

// addWaiting adds n to the number of answers that the agent waits for.
func (s *questions) addWaiting(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += n
}

// waitsForPeople reports whether the agent waits for an answer.
func (s *questions) waitsForPeople() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting > 0
}

func newQuestion(r *run, d tapedeck.Question) *question {
	return &question{run: r, Question: d, asked: make(chan struct{}), chosen: make(chan struct{})}
}

// ask asks people a question of the agent.
func (r *run) ask(ctx context.Context, d tapedeck.Question) (tapedeck.Choice, error) {
	return r.askScoped(ctx, d, "")
}

// askScoped asks people. scope says whose budget the answer grants, "" for none.
func (r *run) askScoped(ctx context.Context, d tapedeck.Question, scope string) (tapedeck.Choice, error) {
	if d.ID == "" {
		d.ID = tapedeck.NewID("per_")
	}
	q := newQuestion(r, d)
	q.scope = scope
	p := payload.PermissionRequested{Question: d}
	if asker := r.asker(); asker != r {
		p.Metadata = tapedeck.Meta{Thread: r.in.Thread, Invocation: r.in.ID}.In(nil)
	}
	ev := r.event(p)
	if err := checkQuestion(&d, &ev); err != nil {
		return tapedeck.Choice{}, err
	}
	if !r.questions.register(q) {
		return tapedeck.Choice{}, tapedeck.Errorf(tapedeck.Invalid, "the agent has asked %s before", d.ID).WithHint("use another id, unless somebody has chosen an option")
	}
	r.questions.addWaiting(1)
	defer r.queue.nudge() // so that the idle timeout counts from now on
	defer r.questions.addWaiting(-1)
	if !r.queue.push(ev) {
		q.withdraw()
		return *q.answer, nil
	}
	follow, stop := context.WithCancel(ctx)
	defer stop()
	go q.follow(follow)
	select {
	case <-q.chosen:
	case <-ctx.Done():
		q.withdraw()
	case <-r.ctx.Done():
		q.withdraw()
	}
	return *q.answer, nil
}

func checkQuestion(d *tapedeck.Question, ev *tapedeck.Event) error {
	if err := tapedeck.CheckID("the permission", d.ID); err != nil {
		return err
	}
	if len(d.Options) == 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "the permission %s has no options", d.ID)
	}
	seen := map[string]bool{}
	for _, o := range d.Options {
		if o.ID == "" || seen[o.ID] {
			return tapedeck.Errorf(tapedeck.Invalid, "the options of the permission %s need ids of their own", d.ID)
		}
		seen[o.ID] = true
	}
	if err := checkForm(d.ID, d.Form); err != nil {
		return err
	}
	return ev.Check()
}

// event returns an event of a question. A sub-agent asks in the run that a user
// started, where people see it.
func (r *run) event(p payload.Payload) tapedeck.Event {
	ev := payload.NewEvent(p)
	r.asker().stamp(&ev)
	return ev
}

// asker returns the run in which a run asks people: the one that a user started, unless
// a durable run yields its questions itself.
func (r *run) asker() *run {
	if r.durable {
		return r
	}
	return r.root()
}

// withdraw answers a question as cancelled, unless it was answered. The answer goes
// through the queue, because the log may not have the question yet.
func (q *question) withdraw() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answer != nil {
		return
	}
	q.setAnswer(tapedeck.Choice{ID: q.ID, Outcome: outcomeCancelled})
	ev := q.run.event(payload.PermissionAnswered{Choice: *q.answer})
	ev.Actor = "tapedeck"
	q.run.queue.push(ev)
}

// setAnswer sets the answer. The caller holds q.mu.
func (q *question) setAnswer(d tapedeck.Choice) {
	q.answer = &d
	close(q.chosen)
	if q.posted {
		q.run.inbox.put(q.run.event(payload.PermissionAnswered{Choice: d}))
	}
}

// A follower is a store that sends what is appended to it, such as the hub.
type follower interface {
	Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error]
}

// follow waits for an answer that was appended without this engine. The engine knows
// the answers that it appended itself.
func (q *question) follow(ctx context.Context) {
	store, ok := q.run.engine.store.(follower)
	if !ok {
		return
	}
	select {
	case <-q.asked:
	case <-q.chosen:
		return
	case <-ctx.Done():
		return
	}
	for page, err := range store.Follow(ctx, q.run.in.Session, tapedeck.FollowOptions{From: q.offset + 1}) {
		if err != nil {
			return // the session was deleted, or ctx is done
		}
		for _, rec := range page.Records {
			if !bytes.Contains(rec.Data, []byte(tapedeck.PermissionAnswered)) {
				continue
			}
			if ev, err := rec.Event(); err == nil && ev.Type == tapedeck.PermissionAnswered {
				q.run.noteAnswered(&ev, ev.Offset)
			}
		}
	}
}

// noteWritten updates the run after its events were appended, from offset first on:
// its questions, answers, child runs and usage.
func (r *run) noteWritten(events []tapedeck.Event, first int64) {
	for i := range events {
		switch events[i].Type {
		case tapedeck.PermissionRequested:
			r.noteRequested(&events[i], first+int64(i))
		case tapedeck.PermissionAnswered:
			r.noteAnswered(&events[i], first+int64(i))
		case tapedeck.InstanceStarted, tapedeck.MessageAdded, tapedeck.WorkflowStarted:
			r.childBegins(&events[i], first+int64(i))
		case tapedeck.RunStarted:
			r.childStarted(&events[i], first+int64(i))
		case tapedeck.WorkflowLeft:
			if r.settled != nil && events[i].Invocation == r.in.ID {
				r.settled() // it has come further than the process that died
			}
		case tapedeck.WorkflowCaught:
			r.inbox.noteCaught(&events[i])
		case tapedeck.UsageReported:
			if events[i].Invocation == r.in.ID {
				r.usage.add(&events[i])
				r.meter.add(&events[i])
			}
		}
	}
}

// registerQuestion registers a question before it is appended, in case the agent
// asked it without waiting for the answer.
func (r *run) registerQuestion(ev *tapedeck.Event) {
	var d tapedeck.Question
	if json.Unmarshal(ev.Data, &d) == nil {
		q := newQuestion(r, d)
		q.posted = true
		r.questions.register(q) // no effect if it is pending
	}
}

func (r *run) noteRequested(ev *tapedeck.Event, offset int64) {
	if q := r.questions.get(idOf(ev)); q != nil && !q.isAsked() {
		q.offset = offset
		close(q.asked)
	}
}

// noteAnswered notes an answer that the log has at an offset. An answer before the question
// is that of an earlier one with its id.
func (r *run) noteAnswered(ev *tapedeck.Event, offset int64) {
	var d tapedeck.Choice
	if json.Unmarshal(ev.Data, &d) != nil {
		return
	}
	if q := r.questions.get(d.ID); q != nil && q.isAsked() && q.offset < offset {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.logged = true
		if q.answer == nil {
			q.setAnswer(d)
		}
	}
}

// closeQuestions returns the events that cancel the pending questions when the run
// ends. After it, no other answer is accepted.
func (r *run) closeQuestions() (events []tapedeck.Event) {
	for _, q := range r.questions.all() {
		q.mu.Lock()
		if q.answer == nil {
			q.setAnswer(tapedeck.Choice{ID: q.ID, Outcome: outcomeCancelled})
		}
		if q.isAsked() && !q.logged {
			ev := r.event(payload.PermissionAnswered{Choice: *q.answer})
			ev.Actor = "tapedeck"
			events = append(events, ev)
		}
		q.mu.Unlock()
	}
	return events
}
