package tapedeck

import (
	"context"
	"iter"
	"slices"
	"time"
)

// A Log keeps the events of many sessions. All its methods may be called from
// several goroutines. The suite in store/storetest is its contract in full.
type Log interface {
	// Append adds events to the end of a session, all of them or none. When it
	// returns without an error they are durable. Appends of several goroutines
	// share one commit. A refusal is an [*AppendError]; other kinds are
	// [Invalid], [NotFound], [Gone], [TooLarge] and, if nothing could be
	// written, [Unavailable]: then nothing of it can be read until it is
	// appended again (though after a crash it may turn out to be there whole).
	// Cancelling ctx while the commit is under way leaves open whether the
	// events were appended.
	Append(ctx context.Context, a Append) (Appended, error)

	// Read returns records of a session in one consistent page: no gap in
	// them, and the head and closed flag as they were when it was read. A
	// range that begins beyond the head is [Invalid].
	Read(ctx context.Context, session string, r Range) (Page, error)

	// Head returns the session's entry in the catalogue as of now.
	Head(ctx context.Context, session string) (Session, error)

	// Erase takes the payloads of events for good and appends the receipt: in
	// one transaction, and when it returns without an error they are in none
	// of the store's files any more. It returns what it appended, and the
	// forks that share some of the events and so have lost them too. Events
	// that the session inherited are [Invalid]; a stream is [NotFound].
	Erase(ctx context.Context, e Erasure) (Appended, []string, error)

	// There is no other call that removes or changes an event: to take
	// something back, append an event that says so.
}

// A Catalogue knows which sessions there are.
type Catalogue interface {
	// Create adds a session, together with its first events. If a session of
	// that id exists, it changes nothing and returns that session and false;
	// one that was deleted while forks need it is a [Conflict]. With a parent
	// it is a fork: it shares the parent's records below ForkAt, whatever
	// their number, at the same cost. Unknown parent: [NotFound]; deleted
	// parent: [Conflict]; ForkAt beyond the parent's head: [Invalid].
	Create(ctx context.Context, s Spec) (Session, bool, error)

	// Delete removes a session. While forks need its records it stays,
	// unreadable ([Gone]), and goes with the last of them.
	Delete(ctx context.Context, session string) error

	// List returns a page of sessions, newest first, and the cursor of the
	// next page, "" if there is none. Deleted and expired ones are left out.
	List(ctx context.Context, f Filter) ([]Session, string, error)

	// Touch restarts the TTL of a session. It may be forgotten in a crash;
	// then the session expires later, never earlier.
	Touch(ctx context.Context, session string) error
}

// A Store is a log with its catalogue. A session that has expired is to every
// method as if it had been deleted.
type Store interface {
	Log
	Catalogue

	// Observe registers an observer. It may be called while the store is in use:
	// the observer is notified of everything that a reader can see only after
	// Observe has returned. There is no way to unregister it.
	Observe(o Observer)

	// Close waits for appends under way and releases the store.
	Close() error
}

// An Observer is notified by a store after each commit and each erasure. Observers
// are called in the order of their registration. A nil member is not called.
type Observer struct {
	// Committed is called after each commit, before the append returns and when
	// its records can be read. Calls are made one at a time, in the order of the
	// commits. It must be quick, because the writer waits for it, and it must
	// neither call the store nor keep the slice.
	Committed func(commits []Commit)

	// Erased is called after an erasure was committed and before the store
	// removes the old payloads from its files, with the session and with the
	// forks that share the events. It removes what the observer derived from the
	// payloads, and may call the store; several erasures may call it at once. If
	// it fails, Erase returns an [Unavailable] error that wraps this one, though
	// the events are erased, and the store calls it again until it succeeds. If
	// the process ends before that, a store that keeps files drops its views and
	// its search index when it is opened again.
	Erased func(ctx context.Context, session string, forks []string) error
}

// An Append is a request to add records to a session. The store may keep Chunks
// without a copy, so they must not be changed afterwards. It copies Events.
type Append struct {
	Session string
	Events  []Event  // for a session; their Offset is ignored
	Chunks  [][]byte // for a stream, instead of Events
	Close   bool     // close the session with it; alone, it closes a closed session again without complaint

	Expect    *int64    // the head must be this; nil for any
	Producer  *Producer // makes a repetition harmless; nil for none
	StreamSeq string    // must be above (bytewise) that of every earlier append; "" for none

	// Check, if not nil, is called when everything else has been accepted, by
	// the goroutine that writes, with the session as it stands. It may refuse
	// by an error, which Append returns. It must be quick and must not call
	// the store. The append may still fail after it.
	Check func(s *Session) error
}

// A Producer identifies an append among those of one writer. Epoch counts the
// writer's lives, Seq its appends in one life, both from 0. An append whose Seq
// was accepted before is a duplicate: nothing is appended, and that is no error.
type Producer struct {
	ID    string
	Epoch int64
	Seq   int64
}

// Appended says what an append did.
type Appended struct {
	First     int64 // offset of the first record; for a duplicate of any but the producer's newest append -1
	Next      int64 // offset after the last record; for a duplicate that is not the newest -1
	Head      int64 // head of the session
	Closed    bool  // whether it is closed now
	Duplicate bool  // nothing was appended: it was there already
	Seq       int64 // with a producer: its highest accepted sequence number
}

// A Range asks for records.
type Range struct {
	From     int64 // first offset wanted; in reverse the first one not wanted, or -1 for the head
	Limit    int   // most records; 0 for 1,000
	MaxBytes int   // most bytes, but at least one record; 0 for 1 MiB
	Reverse  bool  // newest first
}

// FollowOptions say how to follow a session.
type FollowOptions struct {
	From     int64         // first offset wanted; beyond the head is an error
	Idle     time.Duration // give an empty page when nothing came for so long; 0 for never
	Limit    int           // of each page, see [Range]
	MaxBytes int           // of each page

	Wake <-chan struct{} // give an empty page when it receives, once the follower has caught up; nil for never
}

// DefaultLimit is how many records a [Range] asks for that has no limit.
const DefaultLimit = 1000

const defaultMaxBytes = 1 << 20

// WithDefaults returns r with its zero limits filled in.
func (r Range) WithDefaults() Range {
	if r.Limit <= 0 {
		r.Limit = DefaultLimit
	}
	if r.MaxBytes <= 0 {
		r.MaxBytes = defaultMaxBytes
	}
	return r
}

// A Page is an answer to a [Range].
type Page struct {
	Records []Record
	Next    int64 // From of the page after it; in reverse 0 if there is none
	Head    int64 // head of the session when this was read
	Closed  bool  // and whether it was closed
	Gen     int64 // of the session whose records these are; 0 if the log does not say
}

// CaughtUp reports whether the page ends at the head.
func (p Page) CaughtUp() bool { return p.Next >= p.Head }

// A Spec describes a session to create.
type Spec struct {
	ID          string      // passes [CheckID]; for a stream "stream/" and a path that passes [CheckPath]
	Kind        SessionKind // "" for [KindSession]
	ContentType string      // of a stream; "" in a fork for the parent's
	Events      []Event     // the first events of a session
	Chunks      [][]byte    // the first messages of a stream
	Closed      bool
	TTL         time.Duration
	Expires     time.Time
	Parent      string // fork of this session
	ForkAt      *int64 // shares its records below this offset; nil for all it has
	Origin      string // how it was asked for, in words of the door that asks; kept so that it knows a repetition
}

// StreamPrefix begins the id of every stream, so that no session has that id.
const StreamPrefix = "stream/"

// ViewPrefix begins the id of everything of [KindView].
const ViewPrefix = "view/"

// A Filter selects sessions. Zero members select all.
type Filter struct {
	Kind    SessionKind // "" for [KindSession]
	Status  Status
	Agent   string
	Owner   string
	Parent  string
	From    time.Time // created at or after
	To      time.Time // created before
	Query   string    // the title or the id contains it, in any case
	Said    []string  // ids of sessions that pass Query, too: it was said in them
	OpenRun bool      // has an open run
	Closed  bool      // is closed

	Labels map[string]string // has these labels, and maybe others
	Cursor string            // from the page before
	Limit  int               // 0 for 100, at most 1,000
}

// HasLabels reports whether a session has the labels that the filter asks for.
func (f *Filter) HasLabels(labels map[string]string) bool {
	for name, value := range f.Labels {
		if v, ok := labels[name]; !ok || v != value {
			return false
		}
	}
	return true
}

// A Commit is what one group of appends did to one session.
type Commit struct {
	Session Session // after it
	Records []Record
	Gone    bool // it was deleted, or made anew under the same id
	Erased  bool // records of it before these have lost their payload: what is remembered of them must be forgotten
}

// Drafts encodes events or, for a stream, chunks. It also returns a copy of the
// events as they are encoded: with now for a zero time, and the channel of the
// type. A store calls it before it queues an append, so that the goroutine that
// appends does the encoding.
func Drafts(events []Event, chunks [][]byte, now time.Time) ([]Event, []Draft, error) {
	events = slices.Clone(events)
	drafts := make([]Draft, 0, len(events)+len(chunks))
	for _, c := range chunks {
		drafts = append(drafts, Draft{buf: c, chunk: true})
	}
	for i := range events {
		e := &events[i]
		if err := e.Check(); err != nil {
			return nil, nil, AtIndex(err, i, len(events))
		}
		e.normalize(now)
		drafts = append(drafts, e.draft())
	}
	return events, drafts, nil
}

func (e *Event) normalize(now time.Time) {
	if e.Time.IsZero() {
		e.Time = now
	}
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	if c := ChannelOf(e.Type); c != "" {
		e.Channel = c
	} else if e.Channel == "" {
		e.Channel = ChannelAgentState
	}
	if e.Thread == MainThread {
		e.Thread = "" // one spelling; see Event.ThreadName
	}
}

// Events yields the events of a session from offset from up to the head as it
// is when they have all been read.
func Events(ctx context.Context, l Log, session string, from int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			p, err := l.Read(ctx, session, Range{From: from})
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, r := range p.Records {
				e, err := r.Event()
				if !yield(e, err) || err != nil {
					return
				}
			}
			if from = p.Next; p.CaughtUp() {
				return
			}
		}
	}
}

// An OffsetRange is the events from an offset up to and without another.
type OffsetRange struct {
	From  int64   `json:"from"`
	To    int64   `json:"to"`
	Extra Members `json:"-"`
}

// An Erasure asks a store to take the payloads of events for good, and to append
// the receipt for it: both or neither. Offset, type, channel, time, thread,
// invocation, instance, turn and actor of the events stay; see [Record.Erase].
type Erasure struct {
	Session string
	Ranges  []OffsetRange // in order, apart from each other, none empty; of events that the session has itself
	Events  []Event       // what is appended, even to a closed session; not empty

	// Check, if not nil, is called as that of an [Append] is.
	Check func(s *Session) error
}
