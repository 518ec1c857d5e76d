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
	// [Invalid], [NotFound], [Gone], [TooLarge] and [Unavailable]. The last one
	// means that the write failed: no part of the append can be read until it
	// is appended again, except that after a crash all of it may be there. If
	// ctx is cancelled during the commit, the events may or may not have been
	// appended.
	Append(ctx context.Context, a Append) (Appended, error)

	// Read returns a consistent page of a session: its records have no gap, and
	// the head and the closed flag are those of the time of the read. A range
	// that begins beyond the head is [Invalid].
	Read(ctx context.Context, session string, r Range) (Page, error)

	// Head returns the session's entry in the catalogue as of now.
	Head(ctx context.Context, session string) (Session, error)

	// Erase removes the payloads of events for good and appends the receipt: in
	// one transaction, and when it returns without an error they are in none
	// of the store's files any more. Events that the session inherited are
	// [Invalid]; a stream is [NotFound].
	Erase(ctx context.Context, e Erasure) (Erased, error)

	// No other call removes or changes an event: to revert events, append one.
}

// A Catalogue knows which sessions there are.
type Catalogue interface {
	// Create adds a session with its first events. If the session exists, it
	// changes nothing and returns that session. A session that was deleted
	// while forks need it is a [Conflict]. With a
	// parent the session is a fork: it shares the parent's records below
	// ForkAt, at the same cost however many they are. An unknown parent is
	// [NotFound], a deleted parent a [Conflict], and a ForkAt beyond the
	// parent's head [Invalid].
	Create(ctx context.Context, s Spec) (Created, error)

	// Delete removes a session. While forks need its records, it stays but
	// cannot be read ([Gone]); it is removed with the last of the forks.
	Delete(ctx context.Context, session string) error

	// List returns a page of sessions. It leaves out deleted and expired ones.
	List(ctx context.Context, f Filter) (SessionPage, error)

	// Touch restarts the TTL of a session. A crash may lose that; then the
	// session expires later, never earlier.
	Touch(ctx context.Context, session string) error
}

// A Store is a log with its catalogue. Every method treats an expired session like
// a deleted one.
type Store interface {
	Log
	Catalogue

	// Observe registers an observer. It may be called while the store is in use:
	// the observer is notified of everything that a reader can see only after
	// Observe has returned. There is no way to unregister it.
	Observe(o Observer)

	// Close waits for appends in progress and releases the store.
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
	Close   bool     // close the session with the append; Close alone may repeat, and is no error then

	Expect    *int64    // the head must be this offset; nil for any
	Producer  *Producer // makes a repeated append harmless; nil for no producer
	StreamSeq string    // must be above (bytewise) the StreamSeq of every earlier append; "" for none

	// Elsewhere says that the runs of the events have used what they have used in another
	// store, as in an import. Then the owner of the session is not charged for it.
	Elsewhere bool

	// Parts joins several appends, so that they cost one commit: each part is that many
	// of Events, at least one. The first part has the sequence number of Producer, and
	// each later part the next one. If the first part is a duplicate, nothing is
	// appended, also not the later parts; [Appended.Seq] says which are duplicates. Nil
	// for one append. It goes with neither Chunks nor Close.
	Parts []int

	// Check, if not nil, is called after all other checks, on the goroutine that
	// writes, with a copy of the session as it is. To refuse the append it
	// returns an error, which Append returns. It must be quick and must not call
	// the store. The append may still fail after it.
	Check func(s *Session) error
}

// A Producer identifies an append of one writer. Epoch counts the starts of the
// writer, and Seq its appends since the last start, both from 0. An append whose
// Seq was accepted before is a duplicate: the store appends nothing and returns no
// error.
type Producer struct {
	ID    string
	Epoch int64
	Seq   int64
}

// Appended says what an append did.
type Appended struct {
	First     int64 // offset of the first record; -1 for a duplicate of an append that is not the producer's newest
	Next      int64 // offset after the last record; -1 as for First
	Head      int64 // head of the session
	Closed    bool  // the session is closed now
	Duplicate bool  // nothing was appended, because it was appended before
	Seq       int64 // highest sequence number accepted from the producer, if there is one
	Parts     []int // number of records of each part, see [Append.Parts]; nil for none, and for a duplicate
}

// A Range asks for records.
type Range struct {
	From     int64 // first offset; in reverse the offset after the first record, or -1 for the head
	Limit    int   // at most this many records; 0 for 1,000
	MaxBytes int   // at most this many bytes, but at least one record; 0 for 1 MiB
	Reverse  bool  // newest first
}

// FollowOptions say how to follow a session.
type FollowOptions struct {
	From     int64         // first offset; beyond the head it is an error
	Gen      int64         // Gen of the session that From is of; if it has another one now, that is [Replaced]. 0 if it is not known
	Idle     time.Duration // yield an empty page after this long without records; 0 for never
	Limit    int           // of each page, see [Range]
	MaxBytes int           // of each page, see [Range]

	Wake <-chan struct{} // yield an empty page when it receives, once the follower has caught up; nil for never
}

// DefaultLimit is the limit of a [Range] without one, in records.
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

// A Page is the answer to a [Range].
type Page struct {
	Records []Record
	Next    int64 // From of the page after it; in reverse 0 if there is none
	Head    int64 // head of the session at the time of the read
	Closed  bool  // the session was closed at that time
	Gen     int64 // Gen of the session; 0 if the log does not know it
}

// CaughtUp reports whether the page ends at the head.
func (p Page) CaughtUp() bool { return p.Next >= p.Head }

// A Spec describes a session to create.
type Spec struct {
	ID          string      // must pass [CheckID]; for a stream "stream/" and a path that passes [CheckPath]
	Kind        SessionKind // "" for [KindSession]
	ContentType string      // of a stream; "" in a fork for that of the parent
	Events      []Event     // the first events of a session
	Chunks      [][]byte    // the first messages of a stream
	Closed      bool
	TTL         time.Duration
	Expires     time.Time
	Parent      string // the session to fork; "" for no fork
	ForkAt      *int64 // the fork shares the records below this offset; nil for all
	Origin      string // the request in words of the protocol adapter, by which it recognizes a repeated request
}

// Created says what a create did.
type Created struct {
	Session Session // the new one, or the one that existed
	New     bool    // the session did not exist before
}

// StreamPrefix begins the id of every stream, so that no session has the id of a
// stream.
const StreamPrefix = "stream/"

// ViewPrefix begins the id of every session of [KindView]. For a view of a session, a word,
// the id of that session and its Gen follow, with a slash after each: so a store of several
// databases keeps the view where it keeps the session.
const ViewPrefix = "view/"

// A Filter selects sessions. Zero members select all.
type Filter struct {
	Kind     SessionKind // "" for [KindSession]
	Status   Status
	Agent    string
	Owner    string
	Parent   string
	From     time.Time // created at or after
	To       time.Time // created before
	Query    string    // the title or the id contains it, ignoring case
	MatchIDs []string  // ids of sessions that pass even if they do not match Query
	OpenRun  bool      // the session has an open run
	Inputs   bool      // the session has an input that waits
	Closed   bool      // the session is closed

	// Sort is the order: "" by creation, or, for [KindSession], activity, title, tokens,
	// cost, duration or failures; see the package store.
	Sort      string
	Ascending bool // from the lowest place on; false for from the highest on

	Labels  map[string]string // the session has these labels, and maybe others
	Without []string          // names of labels that the session does not have, whatever their values
	Cursor  string            // from the previous page
	Limit   int               // 0 for 100, at most 1,000
}

// A SessionPage is the answer to a [Filter].
type SessionPage struct {
	Sessions []Session // in the order of the filter, by default newest first
	Next     string    // the cursor of the next page; "" if there is none
}

// A Commit says what a commit of a store did to one session.
type Commit struct {
	Session Session  // its entry after the commit
	Records []Record // the records that it got; none if Commit.Gone
	Gone    bool     // it was deleted; if it was recreated under its id, another Commit follows
	Erased  bool     // earlier records have lost their payloads: drop all copies of them
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

// Events yields the events of a session from offset from up to the head. It includes
// events that are appended while it reads.
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

// An OffsetRange is the events from offset From up to, but without, offset To.
type OffsetRange struct {
	From  int64   `json:"from"`
	To    int64   `json:"to"`
	Extra Members `json:"-"`
}

// An Erasure asks a store to remove the payloads of events for good and to append
// the receipt: both or neither. Offset, type, channel, time, thread, invocation,
// instance, turn and actor of the events stay.
//
// The entry in the catalogue stays the fold of the events only if Events remove what the
// entry has from an erased event: its title, its labels, an input that waits.
type Erasure struct {
	Session string
	Ranges  []OffsetRange // ascending, not overlapping, none empty; only events that the session has itself
	Events  []Event       // the events to append, also to a closed session; not empty

	// Check, if not nil, is called like the Check of an [Append].
	Check func(s *Session) error
}

// Erased says what an erasure did.
type Erased struct {
	Appended          // the receipt and what was appended with it
	Forks    []string // the forks that share some of the events, and so have lost their payloads too
}
