package tapedeck

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A SessionKind says what kind of log a catalogue entry is.
type SessionKind string

// These are the kinds.
const (
	KindSession SessionKind = "session" // a log of [Event] envelopes
	KindStream  SessionKind = "stream"  // a log of byte or JSON messages without an envelope, as in Durable Streams
	KindView    SessionKind = "view"    // a checkpoint of a view of a session, which is a cache; or a record of an engine. No protocol serves it
)

// A Status is the status of a session's runs together.
type Status string

// A session is [StatusRunning] while any run is open, or [StatusWaiting] if one
// of these runs waits for a person; otherwise it has the status of the run that
// ended last. Before the first run it is [StatusIdle],
// and a user's message that names an invocation makes it [StatusPending].
const (
	StatusIdle        Status = "idle"        // no run yet
	StatusPending     Status = "pending"     // the first run was requested and has not started
	StatusRunning     Status = "running"     // a run is open
	StatusWaiting     Status = "waiting"     // a run is open and has asked people a question, see Session.Waiting
	StatusComplete    Status = "complete"    // RUN_FINISHED
	StatusFailed      Status = "failed"      // RUN_ERROR
	StatusCancelled   Status = "cancelled"   // RUN_FINISHED with outcome cancelled
	StatusInterrupted Status = "interrupted" // the run's process died, or the run waits for an answer
)

// Begun reports whether a run has started: whether s is neither idle nor
// pending.
func (s Status) Begun() bool { return s != "" && s != StatusIdle && s != StatusPending }

// CodeInterrupted is the code of the RUN_ERROR that ends a run whose process
// died. CodeLeaseExpired is the code if the run's writer did not renew its
// lease in time.
const (
	CodeInterrupted  = "interrupted_by_restart"
	CodeLeaseExpired = "lease_expired"
)

// A Session is a catalogue entry: the description and the state of a log. For a
// session, title, owner, agent, labels, status and runs are a fold of its own
// events. The store updates them in the transaction that appends the events;
// see [Session.Apply].
type Session struct {
	ID      string      `json:"id"`
	Kind    SessionKind `json:"kind"`
	Gen     int64       `json:"-"` // number of the session in the store, never reused; a recreated session gets a new one
	Created time.Time   `json:"created_at"`
	Updated time.Time   `json:"updated_at"` // time of its newest own event, or Created if that is later; for a stream, of its last append

	// Active is when the session was last active: the time of its newest own event in the
	// conversation, to a second. While a run is open, it stays at the newest begin or end
	// of a run. Zero if there is no such event.
	Active time.Time `json:"-"`

	Title  string            `json:"title,omitempty"`
	Owner  string            `json:"owner,omitempty"`
	Agent  string            `json:"agent,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Status Status            `json:"status,omitempty"`
	Runs   []OpenRun         `json:"runs,omitempty"`   // the open runs, oldest first
	Inputs []WaitingInput    `json:"inputs,omitempty"` // the inputs that wait, in the order in which they will run

	// Waiting has the questions for which open runs wait, oldest first. The status is
	// [StatusWaiting] exactly if there are some.
	Waiting []OpenQuestion `json:"waiting,omitempty"`

	Budget *Budget   `json:"budget,omitempty"` // what its runs may use together; nil for no limit
	Spent  *Spending `json:"spent,omitempty"`  // what they have used, reverted ones included; nil for nothing

	Resumable *bool  `json:"resumable,omitempty"` // for a cancelled session: whether it can be resumed; otherwise nil
	Totals    Totals `json:"-"`                   // figures, as of Totals.At
	LastJump  int64  `json:"-"`                   // offset of the newest jump, inherited or not; 0 if none, see [Jump]

	Head     int64  `json:"head"` // the offset that the next event gets
	Closed   bool   `json:"closed,omitempty"`
	Parent   string `json:"parent,omitempty"`  // the session from which it was forked
	ForkedAt int64  `json:"fork_at,omitempty"` // events before this offset are the parent's
	Copy     bool   `json:"copy,omitempty"`    // it is an independent session, not a branch of the parent

	ContentType string        `json:"content_type,omitempty"` // for a stream, as given
	TTL         time.Duration `json:"-"`                      // it expires when unused for this long; 0 means never
	Expires     time.Time     `json:"expires_at,omitzero"`    // fixed time of expiry; zero means never
	Origin      string        `json:"-"`                      // see [Spec.Origin]
	ClosedBy    *Producer     `json:"-"`                      // the producer of the append that closed it; nil if none
}

// An OpenRun is a run that has started and has not ended.
type OpenRun struct {
	Invocation string    `json:"invocation"`
	Thread     string    `json:"thread"`
	Offset     int64     `json:"offset"`             // of its RUN_STARTED
	Started    time.Time `json:"started_at"`         // time of its RUN_STARTED
	Owner      string    `json:"owner,omitempty"`    // the engine that holds its lease; "" if an outside program writes the run
	Implied    bool      `json:"implied,omitempty"`  // an event that its agent sent began it, not a RUN_STARTED of the agent's own, see [Meta]
	LeaseMS    int64     `json:"lease_ms,omitempty"` // how long its outside program may be silent, in milliseconds; 0 for the lease of the server
	Parent     string    `json:"parent,omitempty"`   // the parent run, if that was open in another thread at the start: then this is a sub-agent's run
}

// meta returns the members of Tapedeck in the metadata of e.
func (e *Event) meta() Meta { return MetaOf(json.RawMessage(jsonobj.Member(e.Data, "metadata"))) }

// newRun returns the run that a RUN_STARTED begins while open runs exist.
func newRun(e *Event, open []OpenRun) OpenRun {
	var d struct {
		ParentRunID string `json:"parentRunId"`
	}
	_ = e.Unpack(&d) // a member of another shape counts as absent
	ours := e.meta()
	r := OpenRun{Invocation: e.Invocation, Thread: e.ThreadName(), Offset: e.Offset, Started: e.Time, Owner: ours.Owner}
	if r.Owner == "" {
		r.Implied, r.LeaseMS = ours.Implied, max(0, ours.LeaseMS)
	}
	if slices.ContainsFunc(open, func(p OpenRun) bool { return p.Invocation == d.ParentRunID && p.Thread != r.Thread }) {
		r.Parent = d.ParentRunID
	}
	return r
}

// Apply folds an event of the session itself (not an inherited one) into the
// entry. It ignores what it does not know. Stores call it for every event in
// order, in the transaction that appends the event.
func (s *Session) Apply(e *Event) {
	if e.Time.After(s.Updated) {
		s.Updated = e.Time
	}
	switch e.Type {
	case SessionForked:
		s.applyTitle(e)
		s.applyFork(e)
	case SessionCreated, SessionRenamed, SessionImported:
		s.applyTitle(e)
	case SessionRewound, SessionCleared, SessionOverwritten:
		s.applyJump(e)
	case AttemptSuperseded:
		s.LastJump = e.Offset
	case inputQueued, inputMoved, inputSteered, inputStarted, inputWithdrawn:
		s.applyInput(e)
	case MessageAdded:
		// After the first run, a user's message does not make the session
		// pending: it may be late and belong to a run that has ended.
		if !s.Status.Begun() && e.Invocation != "" && e.messageRole() == "user" {
			s.Status = StatusPending
		}
	case RunStarted:
		r := newRun(e, s.Runs)
		if r.Implied && s.Agent == "" { // the program that writes the session has not named its agent before
			s.Agent = e.meta().Agent
		}
		s.Runs = append(slices.Clone(s.Runs), r)
		s.applyOpen()
	case RunFinished, RunError:
		s.Runs = slices.DeleteFunc(slices.Clone(s.Runs), func(r OpenRun) bool { return r.Invocation == e.Invocation })
		s.dropQuestions(func(q *OpenQuestion) bool { return q.Invocation == e.Invocation })
		s.Status, s.Resumable = endStatus(e)
		if len(s.Runs) > 0 {
			s.applyOpen()
		}
	case PermissionRequested:
		s.applyQuestion(e)
	case PermissionAnswered:
		s.applyAnswer(e)
	case UsageReported:
		s.applyUsage(e)
	case SessionRedacted:
		s.applyErasure(e)
	}
	s.applyTime(e)
	s.applyActive(e)
}

// applyOpen sets the status while a run is open.
func (s *Session) applyOpen() {
	s.Status, s.Resumable = StatusRunning, nil
	if len(s.Waiting) > 0 {
		s.Status = StatusWaiting
	}
}

func (s *Session) applyTitle(e *Event) {
	var d struct {
		Title  *string           `json:"title"`
		Owner  string            `json:"owner"`
		Agent  string            `json:"agent"`
		Labels map[string]string `json:"labels"`
		Budget *Budget           `json:"budget"`
	}
	if !e.Unpack(&d) {
		return
	}
	s.applyBudget(d.Budget)
	if d.Title != nil {
		s.Title = *d.Title
	}
	if d.Owner != "" {
		s.Owner = d.Owner
	}
	if d.Agent != "" {
		s.Agent = d.Agent
	}
	if d.Labels != nil {
		s.Labels = d.Labels
	}
}

// messageRole returns the role of a whole message, "" if it has none.
func (e *Event) messageRole() string {
	var d struct {
		Message struct {
			Role string `json:"role"`
		} `json:"message"`
	}
	_ = e.Unpack(&d) // another shape has no role
	return d.Message.Role
}

// Run returns the open run of a thread.
func (s *Session) Run(thread string) (OpenRun, bool) {
	i := slices.IndexFunc(s.Runs, func(r OpenRun) bool { return r.Thread == thread })
	if i < 0 {
		return OpenRun{}, false
	}
	return s.Runs[i], true
}

// endStatus returns the status that a terminal event gives, and whether a
// cancelled run can be resumed. A cancelled run can be resumed unless the event
// says otherwise.
func endStatus(e *Event) (Status, *bool) {
	var d struct {
		Code    string `json:"code"`
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
	}
	_ = e.Unpack(&d) // a member of another shape counts as absent
	switch {
	case e.Type == RunError && (d.Code == CodeInterrupted || d.Code == CodeLeaseExpired):
		return StatusInterrupted, nil
	case e.Type == RunError:
		return StatusFailed, nil
	case d.Outcome.Type == "cancelled":
		resumable := e.meta().Resumable
		if resumable == nil {
			resumable = new(true)
		}
		return StatusCancelled, resumable
	case d.Outcome.Type == "interrupt":
		return StatusInterrupted, nil
	}
	return StatusComplete, nil
}
