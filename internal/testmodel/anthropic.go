package testmodel

import (
	"encoding/json"
	"net/http"
)

// readAnthropic decodes a request of Anthropic's Messages API.
func readAnthropic(_ *http.Request, body []byte) (prompt, error) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct {
			Name, Description string
			InputSchema       json.RawMessage `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return prompt{}, err
	}
	p := prompt{model: in.Model, stream: in.Stream}
	for _, t := range in.Tools {
		p.tools = append(p.tools, newTool(t.Name, t.Description, t.InputSchema))
	}
	for _, m := range in.Messages {
		if m.Role != "user" {
			continue
		}
		results := p.results
		p.say(contentText(m.Content))
		if p.results < results {
			results = 0 // only results after the newest text count
		}
		p.results = results + toolResults(m.Content)
	}
	return p, nil
}

// toolResults returns the number of tool results in a content.
func toolResults(raw json.RawMessage) int {
	var parts []struct{ Type string }
	_ = json.Unmarshal(raw, &parts) // a string has no results
	n := 0
	for _, p := range parts {
		if p.Type == "tool_result" {
			n++
		}
	}
	return n
}

func anthropicUsage(output int) object {
	return object{
		"input_tokens": inputTokens - cachedTokens, "cache_read_input_tokens": cachedTokens,
		"cache_creation_input_tokens": 0, "output_tokens": output,
	}
}

func stopReason(a answer) string {
	if len(a.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func writeAnthropic(o *reply, a answer) {
	message := object{
		"id": o.id("msg_"), "type": "message", "role": "assistant", "model": o.prompt.model,
		"content": []object{}, "stop_reason": nil, "stop_sequence": nil, "usage": anthropicUsage(1),
	}
	if !o.prompt.stream {
		message["content"], message["stop_reason"], message["usage"] = anthropicBlocks(o, a), stopReason(a), anthropicUsage(outputTokens)
		writeJSON(o.w, message)
		return
	}
	o.event("message_start", object{"type": "message_start", "message": message})
	index := 0
	block := func(begin object, write func(delta func(object))) {
		o.event("content_block_start", object{"type": "content_block_start", "index": index, "content_block": begin})
		write(func(d object) {
			o.event("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": d})
		})
		o.event("content_block_stop", object{"type": "content_block_stop", "index": index})
		index++
	}
	if a.reasoning != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, func(delta func(object)) {
			for _, piece := range words(a.reasoning) {
				delta(object{"type": "thinking_delta", "thinking": piece})
			}
			delta(object{"type": "signature_delta", "signature": "dGVzdA=="})
		})
	}
	if a.text != "" {
		block(object{"type": "text", "text": ""}, func(delta func(object)) {
			o.words(a.text, func(piece string) { delta(object{"type": "text_delta", "text": piece}) })
		})
	}
	for _, c := range a.calls {
		block(object{"type": "tool_use", "id": o.id("toolu_"), "name": c.name, "input": object{}}, func(delta func(object)) {
			pieces(c.args, func(piece string) { delta(object{"type": "input_json_delta", "partial_json": piece}) })
		})
	}
	o.event("message_delta", object{
		"type": "message_delta", "delta": object{"stop_reason": stopReason(a), "stop_sequence": nil}, "usage": object{"output_tokens": outputTokens},
	})
	o.event("message_stop", object{"type": "message_stop"})
}

func anthropicBlocks(o *reply, a answer) []object {
	var blocks []object
	if a.reasoning != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": a.reasoning, "signature": "dGVzdA=="})
	}
	if a.text != "" {
		blocks = append(blocks, object{"type": "text", "text": a.text})
	}
	for _, c := range a.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": o.id("toolu_"), "name": c.name, "input": c.args})
	}
	return blocks
}
