package view

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Summary is what a session amounts to: how long, how much, at what cost, and
// what became of it. It counts what has happened, and so also what was taken
// back later: a rewind gives no tokens back. A fork counts its own events only,
// for those that it inherited are counted where they happened.
type Summary struct {
	Status      tapedeck.Status `json:"status"`                 // see [tapedeck.Session]
	FinalStatus tapedeck.Status `json:"final_status,omitempty"` // Status, if a run has ended and none is open
	Resumable   *bool           `json:"resumable,omitempty"`    // of a cancelled one: whether it can go on

	At              int64 `json:"at"`               // the events before this offset are in it
	Events          int64 `json:"events"`           // the session's own
	InheritedEvents int64 `json:"inherited_events"` // those of its parent, which count nowhere else

	StartedAt  *Time `json:"started_at,omitempty"` // of its first event
	UpdatedAt  *Time `json:"updated_at,omitempty"` // of its newest event
	ElapsedMS  int64 `json:"elapsed_ms"`           // between these two
	DurationMS int64 `json:"duration_ms"`          // that runs took, added up; one that is open, up to the newest event

	Turns      int64                     `json:"turns"`       // runs that a user's message began
	ModelTurns int64                     `json:"model_turns"` // calls of a model, as far as they were told apart
	Runs       map[tapedeck.Status]int64 `json:"runs"`        // how many ended so, and how many are running; those of sub-agents are parts of others
	Messages   map[string]int64          `json:"messages"`    // how many, by role

	Tokens  Tokens       `json:"tokens"`
	CostUSD *float64     `json:"cost_usd,omitempty"` // absent if nobody said what anything cost
	Models  []ModelUsage `json:"models"`             // the same by model, by name
	Tools   []ToolUsage  `json:"tools"`              // by name

	FilesModified []string `json:"files_modified"`           // by tools that edit files, sorted; at most 10,000
	FilesLeftOut  int64    `json:"files_left_out,omitempty"` // how often others were modified
	LinesAdded    int64    `json:"lines_added"`              // as far as the arguments of those tools tell
	LinesRemoved  int64    `json:"lines_removed"`
}

// Tokens count what models have read and written. Cached, cache write and
// reasoning tokens are parts of the others.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Cached     int64 `json:"cached"`      // of the input: read from the provider's cache
	CacheWrite int64 `json:"cache_write"` // of the input: written to it
	Reasoning  int64 `json:"reasoning"`   // of the output
	Total      int64 `json:"total"`       // as the provider says, else input and output
}

// ModelUsage is what one model was used for.
type ModelUsage struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model"` // "" if nobody said
	Tokens
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// ToolUsage is what one tool was used for.
type ToolUsage struct {
	Name       string `json:"name"`
	Count      int64  `json:"count"`       // how often it was called
	Failed     int64  `json:"failed"`      // how often it answered that it had failed
	DurationMS int64  `json:"duration_ms"` // that its answers took, added up
}

// Limits of what a SummaryFold keeps.
const (
	maxFiles    = 10_000
	maxFileName = 4096      // bytes
	maxTallies  = 1000      // tools, open runs, open calls
	maxModels   = 100       // of the session, and of an open run
	maxRecent   = 256       // ids of messages that are known again
	maxHeld     = 4 << 20   // bytes of arguments of calls that have no answer
	maxCount    = 1<<53 - 1 // what survives in JavaScript
)

// A SummaryFold folds the raw events of a session, those included that are not
// in force, into a [Summary]. Events come in the order of their offsets; one that
// was folded before is passed over. Its state is bounded, and as JSON it is a
// checkpoint: a fold that was decoded goes on where the encoded one was.
type SummaryFold struct{ s summaryState }

type summaryState struct {
	Own    int64                 `json:"own"`  // the events before it are the parent's
	Next   int64                 `json:"next"` // offset after the last event
	Sum    Summary               `json:"sum"`
	Entry  tapedeck.Session      `json:"entry"` // for the status
	Models []modelTally          `json:"models,omitempty"`
	Tools  map[string]*ToolUsage `json:"tools,omitempty"`
	Files  map[string]bool       `json:"files,omitempty"`
	Runs   map[string]*runTally  `json:"runs,omitempty"`   // open, by invocation
	Calls  map[string]*callTally `json:"calls,omitempty"`  // without an answer, by thread and id
	Held   int                   `json:"held,omitempty"`   // about how many bytes of arguments there are in them
	Asked  map[string]bool       `json:"asked,omitempty"`  // threads in which a user has said what no run has taken up
	Recent []uint64              `json:"recent,omitempty"` // hashes of ids of messages, newest last
}

// NewSummaryFold returns the fold of a session whose own events begin at offset
// own: 0, or where it was forked.
func NewSummaryFold(own int64) *SummaryFold {
	return &SummaryFold{summaryState{Own: max(own, 0)}}
}

// Next returns the offset of the event that the fold waits for.
func (f *SummaryFold) Next() int64 { return f.s.Next }

// MarshalJSON encodes the state of the fold.
func (f *SummaryFold) MarshalJSON() ([]byte, error) { return json.Marshal(&f.s) }

// UnmarshalJSON replaces the state of the fold.
func (f *SummaryFold) UnmarshalJSON(b []byte) error {
	f.s = summaryState{}
	return json.Unmarshal(b, &f.s)
}

// Summary returns the summary of what was folded. It does not change when the
// fold goes on.
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
	if s.StartedAt != nil {
		s.ElapsedMS = max(0, s.UpdatedAt.Sub(s.StartedAt.Time).Milliseconds())
	}
	return s
}

// addOpen adds what open runs have done so far, but for their usage.
func (f *SummaryFold) addOpen(s *Summary) {
	for _, r := range f.s.Runs {
		if !r.Sub {
			s.Runs[tapedeck.StatusRunning]++
			s.DurationMS = plus(s.DurationMS, s.UpdatedAt.Sub(r.Begun.Time).Milliseconds())
		}
		s.ModelTurns = plus(s.ModelTurns, r.modelTurns())
	}
}

// addModels adds the usage of all models, that of open runs included.
func (f *SummaryFold) addModels(s *Summary) {
	models := cloneTallies(f.s.Models)
	for _, id := range slices.Sorted(maps.Keys(f.s.Runs)) { // in one order, for the sake of the cents
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
		m.CostUSD = cents(m.CostUSD)
		s.Models[i] = ModelUsage(m)
	}
	s.CostUSD = cents(s.CostUSD)
}
