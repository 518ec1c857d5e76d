package view

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Summary has the totals of a session: time, runs, messages, tokens, cost and
// files. Reverted events count, too: a rewind does not give tokens back. A fork
// counts only its own events, because the inherited ones count in the session
// where they happened.
type Summary struct {
	Status      tapedeck.Status `json:"status"`                 // see [tapedeck.Session]
	FinalStatus tapedeck.Status `json:"final_status,omitempty"` // Status, if a run has ended and none is open
	Resumable   *bool           `json:"resumable,omitempty"`    // whether a cancelled session can be resumed

	At              int64 `json:"at"`               // the events before this offset are included
	Events          int64 `json:"events"`           // the session's own
	InheritedEvents int64 `json:"inherited_events"` // inherited from its parent; counted nowhere else in the summary

	StartedAt   *Time `json:"started_at,omitempty"` // the time of the first event of its own conversation
	UpdatedAt   *Time `json:"updated_at,omitempty"` // the time of the newest such event
	Axis        Axis  `json:"axis"`                 // what a player of the session moves along
	RecordingMS int64 `json:"recording_ms"`         // the length of the whole recording, see [Clock]; inherited events count, too
	ElapsedMS   int64 `json:"elapsed_ms"`           // the part of it that is the session's own
	DurationMS  int64 `json:"duration_ms"`          // the duration of all runs in the recording; an open run counts up to the newest event

	Turns      int64                     `json:"turns"`       // runs that a user's message began; of a run that is implied (see [tapedeck.Meta]), the messages of its agent
	ModelTurns int64                     `json:"model_turns"` // model calls, as far as the events tell them apart
	Runs       map[tapedeck.Status]int64 `json:"runs"`        // number by status, running ones included; runs of sub-agents do not count
	Messages   map[string]int64          `json:"messages"`    // number by role

	Tokens  Tokens       `json:"tokens"`
	CostUSD *float64     `json:"cost_usd,omitempty"` // absent if no event reported a cost
	Models  []ModelUsage `json:"models"`             // the same by provider and model
	Tools   []ToolUsage  `json:"tools"`              // the tools, by name

	FilesModified []string `json:"files_modified"`           // the files that tools edited, sorted; at most 10,000
	FilesLeftOut  int64    `json:"files_left_out,omitempty"` // number of modifications of other files
	LinesAdded    int64    `json:"lines_added"`              // the number of lines that these tools added, as far as their arguments show
	LinesRemoved  int64    `json:"lines_removed"`

	LastMessage *LastMessage `json:"last_message,omitempty"` // absent without a message, and after a rewind until the next one

	Days []DayUsage `json:"-"` // what the ended runs used, by day, agent and model
}

// Tokens are the tokens that models read and wrote. Cached, CacheWrite and
// Reasoning are parts of the others.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Cached     int64 `json:"cached"`      // part of the input that was read from the provider's cache
	CacheWrite int64 `json:"cache_write"` // part of the input that was written to the cache
	Reasoning  int64 `json:"reasoning"`   // part of the output
	Total      int64 `json:"total"`       // the sum that the provider reported, otherwise input plus output
}

// A ModelUsage is the usage of one model.
type ModelUsage struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model"` // "" if not reported
	Tokens
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// A ToolUsage is the usage of one tool.
type ToolUsage struct {
	Name       string `json:"name"`
	Count      int64  `json:"count"`       // number of calls
	Failed     int64  `json:"failed"`      // number of answers that say that the tool failed
	DurationMS int64  `json:"duration_ms"` // total duration, as reported, otherwise until the answer
}

// These are the limits of what a SummaryFold keeps.
const (
	maxFiles    = 10_000
	maxFileName = 4096      // bytes
	maxTallies  = 1000      // tools, open runs, open calls, threads with a pending request
	maxModels   = 100       // of the session, and of an open run
	maxRecent   = 256       // ids of messages that are recognized when repeated
	maxArgBytes = 4 << 20   // bytes of arguments of calls without an answer
	maxCount    = 1<<53 - 1 // the largest integer that JavaScript keeps exact
)

// A SummaryFold folds the raw events of a session, reverted ones included, into
// a [Summary]. Events must arrive in the order of their offsets; an event that
// was folded before is ignored. The state is bounded. Its JSON is a checkpoint,
// from which a decoded fold continues.
type SummaryFold struct{ s summaryState }

type summaryState struct {
	Own      int64                 `json:"own"`  // the events before this offset are the parent's
	Next     int64                 `json:"next"` // offset after the last event
	Sum      Summary               `json:"sum"`
	Clock    Clock                 `json:"clock"`
	OwnMS    int64                 `json:"own_ms,omitempty"` // the position at which the session's own events begin
	Entry    tapedeck.Session      `json:"entry"`            // gives the status
	Models   []modelTally          `json:"models,omitempty"`
	Tools    map[string]*ToolUsage `json:"tools,omitempty"`
	Files    map[string]bool       `json:"files,omitempty"`
	Runs     map[string]*runTally  `json:"runs,omitempty"`   // open runs by invocation
	Calls    map[string]*callTally `json:"calls,omitempty"`  // calls without an answer by thread and id
	ArgBytes int                   `json:"held,omitempty"`   // approximate size of the arguments and edits in Calls, in bytes
	Asked    map[string]bool       `json:"asked,omitempty"`  // threads with a user's message that no run has taken up yet
	Recent   []uint64              `json:"recent,omitempty"` // hashes of message ids, newest last
	Last     *lastMessage          `json:"last,omitempty"`   // see Summary.LastMessage
	Begun    *lastMessage          `json:"begun,omitempty"`  // a newer message, which has no text yet
	Days     []DayUsage            `json:"days,omitempty"`   // see Summary.Days, in the order in which they came
}

// NewSummaryFold returns the fold of a session whose own events begin at offset
// own: 0, or the offset of the fork.
func NewSummaryFold(own int64) *SummaryFold {
	return &SummaryFold{summaryState{Own: max(own, 0)}}
}

// Next returns the offset after the last event that was folded.
func (f *SummaryFold) Next() int64 { return f.s.Next }

// MarshalJSON encodes the state of the fold.
func (f *SummaryFold) MarshalJSON() ([]byte, error) { return json.Marshal(&f.s) }

// UnmarshalJSON replaces the state of the fold.
func (f *SummaryFold) UnmarshalJSON(b []byte) error {
	f.s = summaryState{}
	return json.Unmarshal(b, &f.s)
}

// Summary returns the summary of the events folded so far. Folding on does not
// change it.
func (f *SummaryFold) Summary() Summary {
	s := f.s.Sum
	s.At, s.InheritedEvents = f.s.Next, min(f.s.Own, f.s.Next)
	s.Status, s.Resumable = f.s.Entry.Status, f.s.Entry.Resumable
	if s.Status == "" {
		s.Status = tapedeck.StatusIdle
	}
	s.Runs, s.Messages = maps.Clone(s.Runs), maps.Clone(s.Messages)
	if s.Runs == nil {
		s.Runs = map[tapedeck.Status]int64{}
	}
	if s.Messages == nil {
		s.Messages = map[string]int64{}
	}
	if len(f.s.Entry.Runs) == 0 && len(s.Runs) > 0 {
		s.FinalStatus = s.Status
	}
	f.addOpen(&s)
	f.addModels(&s)
	s.Tools = make([]ToolUsage, 0, len(f.s.Tools))
	for _, name := range slices.Sorted(maps.Keys(f.s.Tools)) {
		s.Tools = append(s.Tools, *f.s.Tools[name])
	}
	s.FilesModified = slices.AppendSeq(make([]string, 0, len(f.s.Files)), maps.Keys(f.s.Files))
	slices.Sort(s.FilesModified)
	if f.s.Last != nil {
		s.LastMessage = new(f.s.Last.LastMessage)
	}
	s.Days = f.usage()
	f.s.Clock.setAxis() // that of no events has none
	s.Axis, s.RecordingMS, s.ElapsedMS = f.s.Clock.Axis, f.s.Clock.DurationMS, f.s.Clock.DurationMS-f.s.OwnMS
	return s
}

// addOpen adds the open runs so far, without their usage.
func (f *SummaryFold) addOpen(s *Summary) {
	for _, r := range f.s.Runs {
		if !r.Sub {
			s.Runs[tapedeck.StatusRunning]++
			s.DurationMS = plus(s.DurationMS, f.s.Clock.DurationMS-r.BegunMS)
		}
		s.ModelTurns = plus(s.ModelTurns, r.modelTurns())
	}
}

// addModels adds the usage of all models, open runs included.
func (f *SummaryFold) addModels(s *Summary) {
	models := cloneTallies(f.s.Models)
	for _, id := range slices.Sorted(maps.Keys(f.s.Runs)) { // sorted, because the sum of fractions depends on the order
		models = addTallies(models, f.s.Runs[id].Usage)
	}
	slices.SortFunc(models, func(a, b modelTally) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	s.Models = make([]ModelUsage, len(models))
	for i, m := range models {
		s.Tokens.add(m.Tokens)
		if m.CostUSD != nil {
			s.CostUSD = addCost(s.CostUSD, *m.CostUSD)
		}
		m.CostUSD = roundCost(m.CostUSD)
		s.Models[i] = ModelUsage(m)
	}
	s.CostUSD = roundCost(s.CostUSD)
}
