package rest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A taskTurn is one model call.
type taskTurn struct {
	count  int // of turns, from 0
	number int // as the events say; 0 if they do not
	began  time.Time
	tools  []string
	said   string // the beginning of what the agent said last
}

// mark notes to which turn an event belongs.
func (r *taskRun) mark(e *tapedeck.Event) {
	if e.Turn > r.turn.number {
		if r.turn.number > 0 {
			r.turn = taskTurn{count: r.turn.count + 1, began: e.Time}
		}
		r.turn.number = e.Turn
	}
	r.turns = max(r.turns, r.turn.number)
}

// usage is what a runner reports when a model call is over.
func (r *taskRun) usage(e *tapedeck.Event) []told {
	var u payload.UsageReported
	if json.Unmarshal(e.Data, &u) != nil {
		return nil
	}
	r.mark(e)
	r.spent.add(&u.TokenCounts)
	if u.CostUSD != nil {
		r.spent.cost = new(orZero(r.spent.cost) + *u.CostUSD)
	}
	t := r.turn
	if t.number == 0 {
		r.turns++
		t.number = r.turns
	}
	r.turn = taskTurn{count: r.turn.count + 1, number: r.turn.number, began: e.Time}
	return tell(taskConversationTurn, turnData{
		Number: t.number, Prompt: preview(r.prompt), Response: t.said,
		Millis: millis(t.began, e.Time), Tools: orEmpty(t.tools),
	})
}

// previewRunes is how much of a text a preview shows.
const previewRunes = 200

func preview(text string) string {
	n := 0
	for i := range text {
		if n++; n > previewRunes {
			return text[:i] + "…"
		}
	}
	return text
}

// taskSpent sums up what model calls have used.
type taskSpent struct {
	model string
	cost  *float64
	usage *usageData
}

func (s *taskSpent) add(c *payload.TokenCounts) {
	if c.Model != "" {
		s.model = c.Model
	}
	if s.usage == nil {
		s.usage = &usageData{}
	}
	s.usage.Input += orZero(c.InputTokens)
	s.usage.Output += orZero(c.OutputTokens)
	s.usage.CacheRead += orZero(c.CachedInputTokens)
	s.usage.CacheWrite += orZero(c.CacheWriteInputTokens)
}

func orZero[T int64 | float64](p *T) T {
	if p == nil {
		return 0
	}
	return *p
}

// start says how a run begins.
func (r *taskRun) start(session string, e *tapedeck.Event) startData {
	var d struct {
		Input struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"input"`
		Metadata struct {
			Tapedeck struct {
				Context string   `json:"context"`
				Model   string   `json:"model"`
				Tools   []string `json:"tools"`
				Skills  []string `json:"skills"`
			} `json:"tapedeck"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &d) // see pieceOf
	ours := &d.Metadata.Tapedeck
	s := startData{Session: session, Model: orNull(ours.Model), Tools: orEmpty(ours.Tools), Skills: orEmpty(ours.Skills), Task: r.prompt}
	if c := d.Metadata.Tapedeck.Context; c != "" { // what the agent was told before the user's words
		s.Task = c + "\n\n" + r.prompt
	}
	for _, t := range d.Input.Tools {
		s.Tools = append(s.Tools, t.Name)
	}
	return s
}

// finished tells that a run is over and has not failed.
func (r *taskRun) finished(e *tapedeck.Event) []told {
	var d struct {
		Outcome  struct{ Type string } `json:"outcome"`
		Usage    []payload.TokenUsage  `json:"usage"`
		Metadata struct {
			Tapedeck struct {
				Resumable *bool `json:"resumable"`
			} `json:"tapedeck"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &d) // see pieceOf
	status := "COMPLETE"
	switch d.Outcome.Type {
	case payload.OutcomeCancelled:
		resumable := d.Metadata.Tapedeck.Resumable
		return tell(taskCancelled, cancelledData{"Task was cancelled", resumable == nil || *resumable})
	case payload.OutcomeInterrupt:
		status = "INTERRUPTED"
	}
	spent := r.spent
	if len(d.Usage) > 0 { // it is the sum of all
		spent.usage = nil
		for i := range d.Usage {
			spent.add(&d.Usage[i].TokenCounts)
		}
	}
	return tell(taskAgentComplete, completeData{
		Status: status, Turns: r.turns, Millis: millis(r.started, e.Time),
		Cost: spent.cost, Usage: spent.usage, Model: orNull(spent.model),
	})
}

// failed tells that a run has failed.
func (r *taskRun) failed(e *tapedeck.Event) []told {
	var d payload.RunError
	_ = json.Unmarshal(e.Data, &d) // see pieceOf
	return tell(taskError, errorData{orDefaultText(d.Message, "the run has failed"), orDefaultText(d.Code, "error")})
}

func orDefaultText(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// customFields are the types that the log has no event for, with their members.
// Who has something to say of that kind says it in a CUSTOM event.
var customFields = map[string][]string{
	taskOutputDisplay:    {"output", "error", "comments", "result_files", "status"},
	taskProfileSwitch:    {"profile_type", "profile_name", "tools"},
	taskHookTriggered:    {"hook_event", "tool_name", "decision", "message"},
	taskConversationTurn: {"turn_number", "prompt_preview", "response_preview", "duration_ms", "tools_used"},
	taskConnect:          {"session_id"},
	taskDisconnect:       {"session_id", "total_turns", "total_duration_ms"},
}

// customLists are the members that are lists.
var customLists = []string{"result_files", "tools", "tools_used"}

// customTask returns what a CUSTOM event named task.<type> says. Members that it
// leaves out are null, or an empty list.
func customTask(e *tapedeck.Event) (string, any) {
	var d struct {
		Name  string                     `json:"name"`
		Value map[string]json.RawMessage `json:"value"`
	}
	if json.Unmarshal(e.Data, &d) != nil || d.Value == nil {
		return "", nil
	}
	typ, ok := strings.CutPrefix(d.Name, "task.")
	fields, known := customFields[typ]
	if !ok || !known {
		return "", nil
	}
	for _, f := range fields {
		switch _, given := d.Value[f]; {
		case given:
		case slices.Contains(customLists, f):
			d.Value[f] = json.RawMessage("[]")
		default:
			d.Value[f] = json.RawMessage("null")
		}
	}
	return typ, d.Value
}
