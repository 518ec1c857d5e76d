package process

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// geminiLine is a line of Gemini CLI's stream-json.
type geminiLine struct {
	Type    string          `json:"type"`
	Session string          `json:"session_id"`
	Model   string          `json:"model"`
	Role    string          `json:"role"`
	Content payload.Piece   `json:"content"`
	Delta   bool            `json:"delta"`
	Tool    string          `json:"tool_name"`
	ToolID  string          `json:"tool_id"`
	Input   json.RawMessage `json:"parameters"`
	Status  string          `json:"status"`
	Output  string          `json:"output"`
	Error   json.RawMessage `json:"error"`
	Stats   struct {
		Models map[string]struct {
			Input  *int64 `json:"input_tokens"`
			Output *int64 `json:"output_tokens"`
			Total  *int64 `json:"total_tokens"`
			Cached *int64 `json:"cached"`
		} `json:"models"`
	} `json:"stats"`
}

func (s *stream) gemini(raw json.RawMessage) bool {
	var l geminiLine
	if json.Unmarshal(raw, &l) != nil {
		return false
	}
	switch l.Type {
	case "init":
		s.equipped(narrate.Equipment{Model: l.Model})
		s.link(l.Session)
	case "message":
		return s.geminiSays(&l)
	case "tool_use":
		s.called(narrate.Call{ID: l.ToolID, Name: l.Tool}, l.Input)
	case "tool_result":
		failed := l.Status == "error"
		if failed && l.Output == "" {
			l.Output = message(l.Error)
		}
		s.n.Answered(l.ToolID, narrate.Answer{Content: narrate.Text(l.Output), Failed: failed})
	case "result":
		for _, name := range slices.Sorted(maps.Keys(l.Stats.Models)) {
			m := l.Stats.Models[name]
			s.use("", payload.UsageReported{TokenCounts: payload.TokenCounts{
				Model: name, InputTokens: m.Input, OutputTokens: m.Output, TotalTokens: m.Total, CachedInputTokens: m.Cached,
			}})
		}
		s.result(l.Status != "success", message(l.Error))
		return false // the line has more than the events, so it is kept as RAW, too
	default:
		return false
	}
	return true
}

func (s *stream) geminiSays(l *geminiLine) bool {
	switch {
	case l.Role == "user":
		return true // the log has it
	case l.Role != "assistant":
		return false
	case l.Delta:
		s.say("", "", string(l.Content))
	default:
		s.whole(s.say, "", string(l.Content))
	}
	return true
}

// message returns the text of an error: the error is a string, or has one as a
// member.
func message(raw json.RawMessage) string {
	for _, p := range []string{"/message", "/data/message", "/name", ""} {
		if text := narrate.String(narrate.Pointer(raw, p)); text != "" {
			return text
		}
	}
	return ""
}

// opencodeLine is a line of opencode run --format json. It reports finished parts,
// not always in the order in which they began.
type opencodeLine struct {
	Type    string          `json:"type"`
	Session string          `json:"sessionID"`
	Error   json.RawMessage `json:"error"`
	Part    struct {
		ID     string `json:"id"`
		Text   string `json:"text"`
		Tool   string `json:"tool"`
		CallID string `json:"callID"`
		Reason string `json:"reason"`
		State  struct {
			Status string          `json:"status"`
			Input  json.RawMessage `json:"input"`
			Output string          `json:"output"`
			Error  string          `json:"error"`
		} `json:"state"`
		Tokens struct {
			Input     *int64 `json:"input"`
			Output    *int64 `json:"output"`
			Total     *int64 `json:"total"`
			Reasoning *int64 `json:"reasoning"`
			Cache     struct {
				Read  *int64 `json:"read"`
				Write *int64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
		Cost *float64 `json:"cost"`
	} `json:"part"`
}

// opencodeRefuses begins the answer of a call that opencode has refused by itself.
const opencodeRefuses = "The user rejected permission"

func (s *stream) opencode(raw json.RawMessage) bool {
	var l opencodeLine
	if json.Unmarshal(raw, &l) != nil {
		return false
	}
	s.link(l.Session)
	p := &l.Part
	switch l.Type {
	case "step_start":
		s.n.Turn++
		s.ended, s.refused = false, false
	case "text":
		s.whole(s.say, p.ID, p.Text)
	case "reasoning":
		s.whole(s.think, p.ID, p.Text)
	case "tool_use":
		s.called(narrate.Call{ID: p.CallID, Name: p.Tool}, p.State.Input)
		a := narrate.Answer{Content: narrate.Text(p.State.Output), Failed: p.State.Status == "error"}
		if a.Failed {
			a.Content = narrate.Text(p.State.Error)
			s.refused = s.refused || strings.HasPrefix(p.State.Error, opencodeRefuses)
		}
		s.n.Answered(p.CallID, a)
	case "step_finish":
		t := &p.Tokens
		s.use("", payload.UsageReported{CostUSD: p.Cost, TokenCounts: payload.TokenCounts{
			InputTokens: t.Input, OutputTokens: t.Output, TotalTokens: t.Total, ReasoningTokens: t.Reasoning,
			CachedInputTokens: t.Cache.Read, CacheWriteInputTokens: t.Cache.Write,
		}})
		// After tool calls opencode continues, unless it has refused one because nobody
		// could be asked. No line reports the end of the run: a step with any other reason
		// is the last one.
		s.ended = p.Reason != "tool-calls" || s.refused
	case "error":
		s.result(true, message(l.Error))
	default:
		return false
	}
	return true
}

// piLine is a line of pi --mode json.
type piLine struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Event struct {
		Type  string        `json:"type"`
		Delta payload.Piece `json:"delta"`
	} `json:"assistantMessageEvent"`
	Message struct {
		Role  string `json:"role"`
		Model string `json:"model"`
		Error string `json:"errorMessage"`
		Stop  string `json:"stopReason"`
		Usage struct {
			Input      *int64 `json:"input"`
			Output     *int64 `json:"output"`
			Total      *int64 `json:"totalTokens"`
			CacheRead  *int64 `json:"cacheRead"`
			CacheWrite *int64 `json:"cacheWrite"`
			Cost       struct {
				Total *float64 `json:"total"`
			} `json:"cost"`
		} `json:"usage"`
	} `json:"message"`
	ToolID string          `json:"toolCallId"`
	Tool   string          `json:"toolName"`
	Args   json.RawMessage `json:"args"`
	Result struct {
		Content json.RawMessage `json:"content"`
	} `json:"result"`
	IsError bool `json:"isError"`
}

func (s *stream) pi(raw json.RawMessage) bool {
	var l piLine
	if json.Unmarshal(raw, &l) != nil {
		return false
	}
	switch l.Type {
	case "session":
		s.link(l.ID)
	case "turn_start":
		s.n.Turn++
	case "message_update":
		s.piSays(l.Event.Type, l.Event.Delta)
	case "message_end", "message_start": // the text was streamed, or the log has it
		s.n.EndMessage("")
	case "tool_execution_start":
		s.called(narrate.Call{ID: l.ToolID, Name: l.Tool}, l.Args)
	case "tool_execution_end":
		s.n.Answered(l.ToolID, narrate.Answer{Content: contentOf(l.Result.Content), Failed: l.IsError})
	case "turn_end":
		m, u := &l.Message, &l.Message.Usage
		s.use("", payload.UsageReported{CostUSD: u.Cost.Total, TokenCounts: payload.TokenCounts{
			Model: m.Model, InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Total,
			CachedInputTokens: u.CacheRead, CacheWriteInputTokens: u.CacheWrite,
		}})
		s.failure = ""
		if m.Stop == "error" || m.Stop == "aborted" {
			s.failure = m.Error + " (" + m.Stop + ")"
		}
	case "agent_end":
		s.ended = true
	default:
		return l.Type == "agent_start" || l.Type == "tool_execution_update"
	}
	return true
}

func (s *stream) piSays(typ string, delta payload.Piece) {
	switch typ {
	case "text_delta":
		s.say("", "", string(delta))
	case "thinking_delta":
		s.think("", "", string(delta))
	}
}
