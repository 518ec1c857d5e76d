package tapedeck

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"
)

// An OpenQuestion is a question to people for which an open run waits: a
// [PermissionRequested] that has no answer yet. The event at Offset has the
// whole question.
type OpenQuestion struct {
	ID         string    `json:"id"` // of the permission
	Thread     string    `json:"thread"`
	Invocation string    `json:"invocation"` // the run that waits
	Offset     int64     `json:"offset"`     // of the event that asks
	Asked      time.Time `json:"asked_at"`
	Tool       string    `json:"tool,omitempty"`    // the tool that needs permission; the beginning of a long name
	Message    string    `json:"message,omitempty"` // the beginning of the question; if it has no text, that of the command
}

// The limits of what an entry has of its questions: every list sends it.
const (
	maxOpenQuestions = 1000 // later ones are not in the entry until they are asked again
	maxQuestionText  = 200  // bytes
)

// applyQuestion folds a question. One that no open run asks, waits for nobody.
func (s *Session) applyQuestion(e *Event) {
	var d struct {
		ID      string           `json:"id"`
		Message string           `json:"message"`
		Action  *json.RawMessage `json:"action"`
	}
	if !e.Unpack(&d) || d.ID == "" || len(s.Waiting) >= maxOpenQuestions {
		return
	}
	i := slices.IndexFunc(s.Runs, func(r OpenRun) bool {
		return r.Thread == e.ThreadName() && (e.Invocation == "" || r.Invocation == e.Invocation)
	})
	if i < 0 {
		return
	}
	var a struct {
		Tool    string `json:"tool"`
		Command string `json:"command"`
	}
	if d.Action != nil {
		_ = json.Unmarshal(*d.Action, &a) // a member of another shape counts as absent
	}
	s.Waiting = append(slices.Clone(s.Waiting), OpenQuestion{ // copies of the entry share the old list
		ID: d.ID, Thread: e.ThreadName(), Invocation: s.Runs[i].Invocation, Offset: e.Offset, Asked: e.Time,
		Tool: beginning(a.Tool), Message: beginning(cmp.Or(d.Message, a.Command)),
	})
	s.Status = StatusWaiting
}

// applyAnswer folds an answer by the rule of the conversation view: it answers
// the newest question of its id in its thread and, if it names one, its run.
func (s *Session) applyAnswer(e *Event) {
	var d struct {
		ID string `json:"id"`
	}
	if !e.Unpack(&d) {
		return
	}
	for i, q := range slices.Backward(s.Waiting) {
		if q.ID == d.ID && q.Thread == e.ThreadName() && (e.Invocation == "" || e.Invocation == q.Invocation) {
			s.dropQuestions(func(o *OpenQuestion) bool { return o.Offset == s.Waiting[i].Offset })
			return
		}
	}
}

// dropQuestions removes questions. The status is that of the runs that are still
// open.
func (s *Session) dropQuestions(drop func(*OpenQuestion) bool) {
	var left []OpenQuestion
	for i := range s.Waiting {
		if !drop(&s.Waiting[i]) {
			left = append(left, s.Waiting[i])
		}
	}
	s.Waiting = left
	if s.Status == StatusWaiting && len(left) == 0 {
		s.Status = StatusRunning
	}
}

// applyErasure removes what the entry has of erased questions. The receipt has the budget
// and the spending, which do not follow from the events any more.
func (s *Session) applyErasure(e *Event) {
	var d struct {
		Offsets []OffsetRange `json:"offsets"`
		Budget  *Budget       `json:"budget"`
		Spent   *Spending     `json:"spent"`
	}
	if !e.Unpack(&d) {
		return
	}
	s.applyBudget(d.Budget)
	if d.Spent != nil && d.Spent.Check("the spending") == nil {
		s.Spent = d.Spent
	}
	if len(s.Waiting) == 0 {
		return
	}
	s.Waiting = slices.Clone(s.Waiting)
	for i := range s.Waiting {
		q := &s.Waiting[i]
		if slices.ContainsFunc(d.Offsets, func(r OffsetRange) bool { return r.From <= q.Offset && q.Offset < r.To }) {
			q.Tool, q.Message = "", ""
		}
	}
}

// beginning returns the beginning of a text, cut between characters.
func beginning(text string) string {
	if len(text) <= maxQuestionText {
		return text
	}
	n := maxQuestionText - len("…")
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
