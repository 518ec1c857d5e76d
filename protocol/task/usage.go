package task

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/payload"
)

// A turn is one model call. The protocol has this word for it.
type turn struct {
	count  int // the number of turns before it
	number int // as the events have it; 0 if they have none
	began  time.Time
	tools  []string
	text   string // the beginning of the agent's last message
}

// enterTurn notes the turn that an event belongs to.
func (r *run) enterTurn(e *tapedeck.Event) {
	if e.Turn > r.turn.number {
		if r.turn.number > 0 {
			r.turn = turn{count: r.turn.count + 1, began: e.Time}
		}
		r.turn.number = e.Turn
	}
	r.turns = max(r.turns, r.turn.number)
}

// usage ends a turn: a runner reports the usage when a model call is over.
func (r *run) usage(e *tapedeck.Event) []draft {
	var u payload.UsageReported
	if json.Unmarshal(e.Data, &u) != nil {
		return nil
	}
	r.enterTurn(e)
	r.spent.count(&u.TokenCounts)
	if u.CostUSD != nil {
		r.spent.cost = new(orZero(r.spent.cost) + *u.CostUSD)
	}
	t := r.turn
	if t.number == 0 {
		r.turns++
		t.number = r.turns
	}
	r.turn = turn{count: r.turn.count + 1, number: r.turn.number, began: e.Time}
	return drafts(typeConversationTurn, turnData{
		Number: t.number, Prompt: preview(r.prompt), Response: t.text,
		Millis: millis(t.began, e.Time), Tools: httpapi.OrEmpty(t.tools),
	})
}

// previewRunes is the length of a preview.
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

// totals are the sums of what model calls have used.
type totals struct {
	model string
	cost  *float64
	usage *usageData
}

func (s *totals) count(c *payload.TokenCounts) {
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

// finished encodes the end of a run that has not failed.
func (r *run) finished(e *tapedeck.Event) []draft {
	var d struct {
		Outcome  struct{ Type string } `json:"outcome"`
		Usage    []payload.TokenUsage  `json:"usage"`
		Metadata json.RawMessage       `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &d) // see partOf
	status := "COMPLETE"
	switch d.Outcome.Type {
	case payload.OutcomeCancelled:
		return drafts(typeCancelled, cancelledData{"Task was cancelled", resumable(d.Metadata)})
	case payload.OutcomeInterrupt:
		status = "INTERRUPTED"
	}
	spent := r.spent
	if len(d.Usage) > 0 { // it has the sums of the run
		spent.usage = nil
		for i := range d.Usage {
			spent.count(&d.Usage[i].TokenCounts)
		}
	}
	return drafts(typeAgentComplete, completeData{
		Status: status, Turns: max(r.turns, 1), Millis: millis(r.started, e.Time),
		Cost: spent.cost, Usage: spent.usage, Model: orNull(spent.model),
	})
}

// failed encodes the end of a run that has failed.
func (r *run) failed(e *tapedeck.Event) []draft {
	var d payload.RunError
	_ = json.Unmarshal(e.Data, &d) // see partOf
	return drafts(typeError, errorData{orDefaultText(d.Message, "the run has failed"), orDefaultText(d.Code, "error")})
}

// disconnect puts session_disconnect before what the end of a run becomes, if its agent was
// connected. The client closes the stream after that.
func (r *run) disconnect(session string, e *tapedeck.Event, out []draft) []draft {
	if !r.linked {
		return out
	}
	for i := range out {
		out[i].part++
	}
	return append(drafts(typeDisconnect, disconnectData{session, max(r.turns, 1), millis(r.started, e.Time)}), out...)
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

// customFields are the types that an agent can send in a CUSTOM event, with their
// members. Most of them have no event in the log.
var customFields = map[string][]string{
	typeOutputDisplay:    {"output", "error", "comments", "result_files", "status"},
	typeProfileSwitch:    {"profile_type", "profile_name", "tools"},
	typeHookTriggered:    {"hook_event", "tool_name", "decision", "message"},
	typeConversationTurn: {"turn_number", "prompt_preview", "response_preview", "duration_ms", "tools_used"},
	typeConnect:          {"session_id"},
	typeDisconnect:       {"session_id", "total_turns", "total_duration_ms"},
}

// customLists are the members that are lists.
var customLists = []string{"result_files", "tools", "tools_used"}

// customEvent returns the type and the data of a CUSTOM event named task.<type>.
// Members that it leaves out are null, or an empty list.
func customEvent(e *tapedeck.Event) (string, any) {
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
