package view

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A runTally holds the counts of an open run until it ends.
type runTally struct {
	BegunMS int64        `json:"begun_ms"`          // its position in the recording
	Asked   bool         `json:"asked,omitempty"`   // a user's message began it
	Implied bool         `json:"implied,omitempty"` // it has a turn for each message of the agent, see [tapedeck.Meta]
	Sub     bool         `json:"sub,omitempty"`     // the run of a sub-agent, which is counted in its parent run
	Turn    int          `json:"turn,omitempty"`    // the highest number of a model call so far
	Turns   int64        `json:"turns,omitempty"`   // number of model calls that have a number
	Reports int64        `json:"reports,omitempty"` // number of usage reports
	Usage   []modelTally `json:"usage,omitempty"`   // as reported; the terminal event overrides it

	Agent       string `json:"agent,omitempty"`
	Calls       int64  `json:"calls,omitempty"`        // number of tool calls
	CallsFailed int64  `json:"calls_failed,omitempty"` // number of those that failed
}

// modelTurns returns the number of model calls. Some agents number them, some
// report the usage of each, some do both.
func (r *runTally) modelTurns() int64 { return max(r.Turns, r.Reports) }

// Apply folds one event of the raw log.
func (f *SummaryFold) Apply(e *tapedeck.Event) {
	s := &f.s
	if e.Offset < s.Next {
		return
	}
	s.Next = e.Offset + 1
	s.Clock.Apply(e)
	if e.Offset < s.Own {
		s.OwnMS = s.Clock.DurationMS
		return
	}
	s.Sum.Events++
	if !IsAdministrative(e.Channel) {
		at := &Time{e.Time}
		if s.Sum.StartedAt == nil {
			s.Sum.StartedAt, s.Sum.UpdatedAt = at, at
		}
		if e.Time.After(s.Sum.UpdatedAt.Time) {
			s.Sum.UpdatedAt = at
		}
	}
	if e.Turn > 0 {
		if r := s.Runs[e.Invocation]; r != nil && e.Turn > r.Turn {
			r.Turn = e.Turn
			r.Turns++
		}
	}
	if fold, ok := summaryFolds[e.Type]; ok {
		fold(f, e)
	}
}

var summaryFolds = map[string]func(*SummaryFold, *tapedeck.Event){
	tapedeck.RunStarted:            (*SummaryFold).runStarted,
	tapedeck.RunFinished:           (*SummaryFold).runEnded,
	tapedeck.RunError:              (*SummaryFold).runEnded,
	tapedeck.UsageReported:         (*SummaryFold).usageReported,
	tapedeck.MessageAdded:          (*SummaryFold).messageAdded,
	tapedeck.TextMessageStart:      (*SummaryFold).messageStart,
	tapedeck.TextMessageContent:    (*SummaryFold).sayMore,
	tapedeck.ReasoningMessageStart: (*SummaryFold).messageStart,
	tapedeck.ToolCallStart:         (*SummaryFold).toolStart,
	tapedeck.ToolCallArgs:          (*SummaryFold).toolArgs,
	tapedeck.ToolCallEnd:           (*SummaryFold).toolEnd,
	tapedeck.ToolCallResult:        (*SummaryFold).toolResult,
	tapedeck.PermissionRequested:   (*SummaryFold).applyEntry,
	tapedeck.PermissionAnswered:    (*SummaryFold).applyEntry,
	tapedeck.SessionRewound:        (*SummaryFold).jumped,
	tapedeck.SessionCleared:        (*SummaryFold).jumped,
	tapedeck.SessionOverwritten:    (*SummaryFold).jumped,
	tapedeck.SessionForked:         (*SummaryFold).applyEntry,
}

func (f *SummaryFold) applyEntry(e *tapedeck.Event) { f.s.Entry.Apply(e) }

func (f *SummaryFold) runStarted(e *tapedeck.Event) {
	f.endRun(e, tapedeck.StatusInterrupted, nil) // a run that is still open here has no terminal event: it counts as interrupted
	f.applyEntry(e)
	if len(f.s.Runs) >= maxTallies {
		return
	}
	var d struct {
		Input struct {
			Messages []struct {
				Role string `json:"role"`
			} `json:"messages"`
		} `json:"input"`
		Metadata json.RawMessage `json:"metadata"`
	}
	_ = decode(e, &d) // other shapes are ignored
	ours := tapedeck.MetaOf(d.Metadata)
	r := &runTally{BegunMS: f.s.Clock.DurationMS, Sub: payload.IsSubThread(e.Thread), Implied: ours.Implied, Agent: agentOf(e, ours.Agent)}
	if n := len(d.Input.Messages); !r.Sub && (f.s.Asked[e.ThreadName()] || n > 0 && d.Input.Messages[n-1].Role == payload.RoleUser) {
		f.noteRequest(r)
		delete(f.s.Asked, e.ThreadName())
	}
	put(&f.s.Runs, e.Invocation, r)
}

// noteRequest notes that a user's message began the run.
func (f *SummaryFold) noteRequest(r *runTally) {
	if !r.Asked {
		r.Asked = true
		f.s.Sum.Turns++
	}
}

func (f *SummaryFold) runEnded(e *tapedeck.Event) {
	f.applyEntry(e)
	var d struct {
		Usage json.RawMessage `json:"usage"`
	}
	_ = decode(e, &d)
	status := endStatus(e)
	if f.s.Runs[e.Invocation] == nil { // it failed before it started
		increment(&f.s.Sum.Runs, status)
		used := readUsage(d.Usage)
		f.s.Models = addTallies(f.s.Models, used)
		f.endUsage(e, &runTally{Agent: agentOf(e, "")}, status, used)
		return
	}
	f.endRun(e, status, readUsage(d.Usage))
	if status == tapedeck.StatusCancelled || e.Type == tapedeck.RunError {
		f.dropCalls(func(k *callTally) bool { return k.Invocation == e.Invocation }) // no answer will arrive
	}
}

// endRun ends the run of e if it is open. usage is from its terminal event, and
// includes what was reported before.
func (f *SummaryFold) endRun(e *tapedeck.Event, status tapedeck.Status, usage []modelTally) {
	r := f.s.Runs[e.Invocation]
	if r == nil {
		return
	}
	delete(f.s.Runs, e.Invocation)
	if !r.Sub {
		increment(&f.s.Sum.Runs, status)
		f.s.Sum.DurationMS = plus(f.s.Sum.DurationMS, f.s.Clock.DurationMS-r.BegunMS)
	}
	f.s.Sum.ModelTurns = plus(f.s.Sum.ModelTurns, r.modelTurns())
	used := finalUsage(r.Usage, usage)
	f.s.Models = addTallies(f.s.Models, used)
	f.endUsage(e, r, status, used)
}

func (f *SummaryFold) usageReported(e *tapedeck.Event) {
	var d usageReport
	if !decode(e, &d) {
		return
	}
	tally := []modelTally{d.tally()}
	if r := f.s.Runs[e.Invocation]; r != nil {
		r.Reports++
		r.Usage = addTallies(r.Usage, tally)
		return
	}
	f.s.Sum.ModelTurns++
	f.s.Models = addTallies(f.s.Models, tally)
	f.addUsage(e, agentOf(e, ""), tally)
}

func (f *SummaryFold) messageAdded(e *tapedeck.Event) {
	var d struct {
		Message wireMessage `json:"message"`
	}
	if !decode(e, &d) || !f.countMessage(e, d.Message.ID, d.Message.Role) {
		return
	}
	m := &d.Message
	text, _ := content(m.Content)
	id := m.ID
	if nameOf(m.Role, id).kind == told {
		id = "" // nothing is added to it
	}
	f.say(e, id, m.Role, text)
	switch m.Role {
	case payload.RoleUser:
		f.userSaid(e)
	case payload.RoleAssistant:
		for _, t := range m.ToolCalls {
			f.call(e, t.ID, t.Function.Name)
			f.setInput(e, t.ID, []byte(t.Function.Arguments))
		}
	case payload.RoleTool:
		a := answer{ToolCallID: m.ToolCallID, Error: m.Error, Metadata: m.Metadata}
		f.answered(e, &a)
	}
}

func (f *SummaryFold) userSaid(e *tapedeck.Event) {
	if payload.IsSubThread(e.Thread) {
		return // an agent gives a sub-agent its task
	}
	if r := f.s.Runs[e.Invocation]; r != nil {
		f.noteRequest(r)
	} else if len(f.s.Asked) < maxTallies {
		put(&f.s.Asked, e.ThreadName(), true)
	}
}

func (f *SummaryFold) messageStart(e *tapedeck.Event) {
	var d struct {
		MessageID string `json:"messageId"`
		Role      string `json:"role"`
	}
	if !decode(e, &d) {
		return
	}
	switch {
	case e.Type == tapedeck.ReasoningMessageStart:
		d.Role = payload.RoleReasoning
	case d.Role == "":
		d.Role = payload.RoleAssistant
	}
	if !f.countMessage(e, d.MessageID, d.Role) {
		if m := f.s.Last; m != nil && m.Role != d.Role && m.ID == d.MessageID {
			ended := *m // what follows is added to another message of this id
			ended.ID, f.s.Last = "", &ended
		}
		return
	}
	f.say(e, d.MessageID, d.Role, "")
	switch r := f.s.Runs[e.Invocation]; {
	case d.Role == payload.RoleUser:
		f.userSaid(e)
	case r != nil && r.Implied:
		f.s.Sum.Turns++
	}
}

// countMessage counts a message. It reports false for a message that it has
// counted: a name that is repeated soon is the same message, reopened or
// restated.
func (f *SummaryFold) countMessage(e *tapedeck.Event, id, role string) bool {
	h := fnv.New64a()
	name := nameOf(role, id)
	for _, s := range []string{e.ThreadName(), e.Invocation, id, strconv.Itoa(name.kind)} {
		_, _ = h.Write(append([]byte(s), 0)) // it never fails
	}
	sum := h.Sum64()
	said := name.kind == told && e.Type == tapedeck.TextMessageStart // a message of its own, see textStart
	if !said && slices.Contains(f.s.Recent, sum) {
		return false
	}
	if len(f.s.Recent) >= maxRecent {
		f.s.Recent = f.s.Recent[:copy(f.s.Recent, f.s.Recent[1:])]
	}
	f.s.Recent = append(f.s.Recent, sum)
	if knownRole[role] {
		increment(&f.s.Sum.Messages, role)
	}
	return true
}

var knownRole = map[string]bool{
	payload.RoleUser: true, payload.RoleAssistant: true, payload.RoleSystem: true, payload.RoleDeveloper: true,
	payload.RoleTool: true, payload.RoleReasoning: true, payload.RoleActivity: true,
}

func increment[K comparable](m *map[K]int64, key K) {
	if *m == nil {
		*m = map[K]int64{}
	}
	(*m)[key]++
}

func put[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
}
