package tapedeck

import (
	"slices"
	"time"
)

// A SessionKind divides the catalogue.
type SessionKind string

// The kinds.
const (
	KindSession SessionKind = "session" // a log of [Event] envelopes
	KindStream  SessionKind = "stream"  // a log of byte or JSON messages without an envelope, as Durable Streams has them
	KindView    SessionKind = "view"    // a stream of folds that were put away, to begin from; it can be lost without loss, and no door serves it
)

// A Status is what a session's runs amount to.
type Status string

// The statuses. A session is [StatusRunning] while any run is open; otherwise
// its status is that of the run that ended last. Before the first run it is
// [StatusIdle], and [StatusPending] once a user has asked for one: has said
// something that is of an invocation.
const (
	StatusIdle        Status = "idle"        // no run yet
	StatusPending     Status = "pending"     // the first run is asked for and has not started
	StatusRunning     Status = "running"     // a run is open
	StatusComplete    Status = "complete"    // RUN_FINISHED
	StatusFailed      Status = "failed"      // RUN_ERROR
	StatusCancelled   Status = "cancelled"   // RUN_FINISHED with outcome cancelled
	StatusInterrupted Status = "interrupted" // the run's process died, or it waits for an answer
)

// Begun reports whether a run has started: of a session that is neither idle nor
// pending.
func (s Status) Begun() bool { return s != "" && s != StatusIdle && s != StatusPending }

// CodeInterrupted is the code of the RUN_ERROR that ends a run whose process
// died; CodeLeaseExpired that of a run whose writer was not heard of for longer
// than its lease.
const (
	CodeInterrupted  = "interrupted_by_restart"
	CodeLeaseExpired = "lease_expired"
)

// A Session is an entry of the catalogue: what a log is, and where it stands.
// For a session, title, owner, agent, labels, status and runs are a fold of its
// own events, kept by the store in the transaction that appends them; see
// [Session.Apply].
type Session struct {
	ID      string      `json:"id"`
	Kind    SessionKind `json:"kind"`
	Gen     int64       `json:"-"` // number of this incarnation: unlike the id, never used twice in one store
	Created time.Time   `json:"created_at"`
	Updated time.Time   `json:"updated_at"` // time of its newest own event, or Created if that is later; of a stream, its last append

	Title  string            `json:"title,omitempty"`
	Owner  string            `json:"owner,omitempty"`
	Agent  string            `json:"agent,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Status Status            `json:"status,omitempty"`
	Runs   []OpenRun         `json:"runs,omitempty"` // the runs that are open, oldest first

	Resumable *bool `json:"resumable,omitempty"` // of a cancelled one: whether it can go on; nil for any other
	LastJump  int64 `json:"-"`                   // offset of the newest event that takes others back, inherited or not; 0 for none, see [Jump]

	Head     int64  `json:"head"` // the offset that the next event gets
	Closed   bool   `json:"closed,omitempty"`
	Parent   string `json:"parent,omitempty"`  // the session it was forked from
	ForkedAt int64  `json:"fork_at,omitempty"` // events before this offset are the parent's
	Copy     bool   `json:"copy,omitempty"`    // it stands for itself: not a branch of the parent

	ContentType string        `json:"content_type,omitempty"` // of a stream, as given
	TTL         time.Duration `json:"-"`                      // it expires when not touched for so long; 0 for never
	Expires     time.Time     `json:"expires_at,omitzero"`    // when it expires in any case; zero for never
	Origin      string        `json:"-"`                      // see [Spec.Origin]
	ClosedBy    *Producer     `json:"-"`                      // the producer of the append that closed it, if it had one
}

// An OpenRun is a run that has started and has not ended.
type OpenRun struct {
	Invocation string    `json:"invocation"`
	Thread     string    `json:"thread"`
	Offset     int64     `json:"offset"`           // of its RUN_STARTED
	Started    time.Time `json:"started_at"`       // when
	Owner      string    `json:"owner,omitempty"`  // the engine that holds its lease; "" for a run that is written from outside
	Parent     string    `json:"parent,omitempty"` // the run that started it, on another thread, if that was open then: it is a sub-agent's
}

// newRun returns the run that a RUN_STARTED begins while others are open.
func newRun(e *Event, open []OpenRun) OpenRun {
	var d struct {
		ParentRunID string `json:"parentRunId"`
		Metadata    struct {
			Tapedeck struct {
				Owner string `json:"owner"`
			} `json:"tapedeck"`
		} `json:"metadata"`
	}
	_ = e.Unpack(&d) // a member of another shape counts as absent
	r := OpenRun{Invocation: e.Invocation, Thread: e.ThreadName(), Offset: e.Offset, Started: e.Time, Owner: d.Metadata.Tapedeck.Owner}
	if slices.ContainsFunc(open, func(p OpenRun) bool { return p.Invocation == d.ParentRunID && p.Thread != r.Thread }) {
		r.Parent = d.ParentRunID
	}
	return r
}

// Apply folds an event of the session itself (not one inherited by a fork) into
// the entry. It ignores what it does not understand. Stores call it for every
// event in order, within the transaction that appends the event.
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
		s.applyTaking(e)
	case MessageAdded:
		// What a user says after the first run asks for nothing: it may as well come
		// late, and belong to a run that has ended.
		if !s.Status.Begun() && e.Invocation != "" && e.saidBy() == "user" {
			s.Status = StatusPending
		}
	case RunStarted:
		s.Runs = append(slices.Clone(s.Runs), newRun(e, s.Runs))
		s.Status, s.Resumable = StatusRunning, nil
	case RunFinished, RunError:
		s.Runs = slices.DeleteFunc(slices.Clone(s.Runs), func(r OpenRun) bool { return r.Invocation == e.Invocation })
		s.Status, s.Resumable = endStatus(e)
		if len(s.Runs) > 0 {
			s.Status, s.Resumable = StatusRunning, nil
		}
	}
}

func (s *Session) applyTitle(e *Event) {
	var d struct {
		Title  *string           `json:"title"`
		Owner  string            `json:"owner"`
		Agent  string            `json:"agent"`
		Labels map[string]string `json:"labels"`
	}
	if !e.Unpack(&d) {
		return
	}
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

// saidBy returns the role of a whole message.
func (e *Event) saidBy() string {
	var d struct {
		Message struct {
			Role string `json:"role"`
		} `json:"message"`
	}
	_ = e.Unpack(&d) // of another shape: nobody has said it
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

// endStatus returns the status that a terminal event leaves, and of a cancelled
// run whether it can be resumed: it can unless the event says otherwise.
func endStatus(e *Event) (Status, *bool) {
	var d struct {
		Code    string `json:"code"`
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
		Metadata struct {
			Tapedeck struct {
				Resumable *bool `json:"resumable"`
			} `json:"tapedeck"`
		} `json:"metadata"`
	}
	_ = e.Unpack(&d) // a member of another shape counts as absent
	switch {
	case e.Type == RunError && (d.Code == CodeInterrupted || d.Code == CodeLeaseExpired):
		return StatusInterrupted, nil
	case e.Type == RunError:
		return StatusFailed, nil
	case d.Outcome.Type == "cancelled":
		resumable := d.Metadata.Tapedeck.Resumable
		if resumable == nil {
			resumable = new(true)
		}
		return StatusCancelled, resumable
	case d.Outcome.Type == "interrupt":
		return StatusInterrupted, nil
	}
	return StatusComplete, nil
}

// VendorKey is the member of an AG-UI event's metadata that is ours.
const VendorKey = "tapedeck"

// Labels are free names and values.
type Labels = map[string]string
