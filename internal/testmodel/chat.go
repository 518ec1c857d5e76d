package testmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// readChat decodes a request of OpenAI's chat completions API.
func readChat(_ *http.Request, body []byte) (prompt, error) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct {
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return prompt{}, err
	}
	p := prompt{model: in.Model, stream: in.Stream}
	for _, t := range in.Tools {
		p.tools = append(p.tools, newTool(t.Function.Name, t.Function.Description, t.Function.Parameters))
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			p.say(contentText(m.Content))
		case "tool":
			p.results++
		}
	}
	return p, nil
}

// contentText returns the text of a content: a string, or the text of its parts.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(raw, &parts) // any other value has no text
	for _, p := range parts {
		s += p.Text
	}
	return s
}

func chatUsage() object {
	return object{
		"prompt_tokens": inputTokens, "completion_tokens": outputTokens, "total_tokens": inputTokens + outputTokens,
		"prompt_tokens_details":     object{"cached_tokens": cachedTokens},
		"completion_tokens_details": object{"reasoning_tokens": reasoningTokens},
	}
}

func finishReason(a answer) string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func writeChat(o *reply, a answer) {
	base := object{"id": o.id("chatcmpl-"), "created": time.Now().Unix(), "model": o.prompt.model, "object": "chat.completion.chunk"}
	if !o.prompt.stream {
		base["object"] = "chat.completion"
		base["choices"] = []object{{"index": 0, "message": chatMessage(o, a), "finish_reason": finishReason(a)}}
		base["usage"] = chatUsage()
		writeJSON(o.w, base)
		return
	}
	chunk := func(delta object, finish any) {
		base["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": finish}}
		o.event("", base)
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, piece := range words(a.reasoning) {
		chunk(object{"reasoning_content": piece}, nil)
	}
	o.words(a.text, func(piece string) { chunk(object{"content": piece}, nil) })
	for i, c := range a.calls {
		chunk(object{"tool_calls": []object{{
			"index": i, "id": o.id("call_"), "type": "function", "function": object{"name": c.name, "arguments": ""},
		}}}, nil)
		pieces(c.args, func(piece string) {
			chunk(object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}}, nil)
		})
	}
	chunk(object{}, finishReason(a))
	base["choices"], base["usage"] = []object{}, chatUsage()
	o.event("", base)
	_, _ = fmt.Fprint(o.w, "data: [DONE]\n\n")
	o.flush()
}

func chatMessage(o *reply, a answer) object {
	m := object{"role": "assistant", "content": a.text}
	if a.reasoning != "" {
		m["reasoning_content"] = a.reasoning
	}
	var calls []object
	for _, c := range a.calls {
		calls = append(calls, object{"id": o.id("call_"), "type": "function", "function": object{"name": c.name, "arguments": string(c.args)}})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	return m
}
