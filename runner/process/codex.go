package process

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// codexLine is a line of codex exec --json. It has no deltas.
type codexLine struct {
	Type   string          `json:"type"`
	Thread string          `json:"thread_id"`
	Item   json.RawMessage `json:"item"`
	Usage  struct {
		Input      *int64 `json:"input_tokens"`
		Output     *int64 `json:"output_tokens"`
		Cached     *int64 `json:"cached_input_tokens"`
		CacheWrite *int64 `json:"cache_write_input_tokens"`
		Reasoning  *int64 `json:"reasoning_output_tokens"`
	} `json:"usage"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

type codexItem struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Items    json.RawMessage `json:"items"` // set in a todo_list
	Status   string          `json:"status"`
	Command  string          `json:"command"`
	Output   string          `json:"aggregated_output"`
	ExitCode *int            `json:"exit_code"`
	Server   string          `json:"server"` // set in an mcp_tool_call
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"arguments"`
	Result   json.RawMessage `json:"result"`
	Error    json.RawMessage `json:"error"`
	Query    string          `json:"query"`   // set in a web_search
	Changes  json.RawMessage `json:"changes"` // set in a file_change
}

func (s *stream) codex(raw json.RawMessage) bool {
	var l codexLine
	if json.Unmarshal(raw, &l) != nil {
		return false
	}
	switch l.Type {
	case "thread.started":
		s.link(l.Thread)
	case "turn.started":
	case "item.started", "item.updated", "item.completed":
		var it codexItem
		return json.Unmarshal(l.Item, &it) == nil && it.ID != "" && s.codexItem(&it, l.Type == "item.completed")
	case "turn.completed":
		u := l.Usage
		s.use("", payload.UsageReported{TokenCounts: payload.TokenCounts{
			InputTokens: u.Input, OutputTokens: u.Output, CachedInputTokens: u.Cached,
			CacheWriteInputTokens: u.CacheWrite, ReasoningTokens: u.Reasoning,
		}})
		s.result(false, "")
	case "turn.failed":
		s.result(true, l.Error.Message)
	default:
		return false // such as an error from which it may recover
	}
	return true
}

func (s *stream) codexItem(it *codexItem, done bool) bool {
	switch it.Type {
	case "agent_message", "reasoning":
		tell := s.say
		if it.Type == "reasoning" {
			tell = s.think
		}
		if done {
			s.whole(tell, it.ID, it.Text)
		}
		return true
	case "todo_list":
		entries, ok := narrate.Entries(it.Items)
		if ok {
			s.n.Plan(entries)
		}
		return ok
	}
	name, input, ok := it.call()
	if !ok {
		return false
	}
	s.called(narrate.Call{ID: it.ID, Name: name}, input)
	if done {
		s.n.Answered(it.ID, it.answer())
	}
	return true
}

// call returns the tool and the input of an item; false if the item is not a call.
func (it *codexItem) call() (name string, input json.RawMessage, ok bool) {
	switch it.Type {
	case "command_execution":
		return "shell", object(map[string]string{"command": it.Command}), true
	case "file_change":
		return "file_change", object(map[string]json.RawMessage{"changes": it.Changes}), true
	case "mcp_tool_call":
		return strings.Trim(it.Server+"."+it.Tool, "."), it.Input, true
	case "web_search":
		return "web_search", object(map[string]string{"query": it.Query}), true
	}
	return "", nil, false
}

func (it *codexItem) answer() narrate.Answer {
	a := narrate.Answer{Failed: it.Status == "failed" || it.Status == "declined" || it.ExitCode != nil && *it.ExitCode != 0}
	text := it.Output
	if it.Type == "mcp_tool_call" {
		var result struct {
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(it.Result, &result) == nil && len(result.Content) > 0 {
			a.Content = contentOf(result.Content)
			return a
		}
		text = narrate.String(it.Result)
	}
	if a.Failed && text == "" {
		text = narrate.String(it.Error)
	}
	a.Content = narrate.Text(text)
	return a
}
