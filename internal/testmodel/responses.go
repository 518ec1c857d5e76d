package testmodel

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// readResponses decodes a request of OpenAI's Responses API.
func readResponses(_ *http.Request, body []byte) (prompt, error) {
	var in struct {
		Model  string
		Stream bool
		Input  json.RawMessage
		Tools  []struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return prompt{}, err
	}
	p := prompt{model: in.Model, stream: in.Stream}
	for _, t := range in.Tools {
		p.tools = append(p.tools, newTool(t.Name, t.Description, t.Parameters))
	}
	var items []struct {
		Type, Role string
		Content    json.RawMessage
	}
	if !bytes.HasPrefix(bytes.TrimSpace(in.Input), []byte("[")) {
		p.say(contentText(in.Input))
		return p, nil
	}
	if err := json.Unmarshal(in.Input, &items); err != nil {
		return p, err
	}
	for _, it := range items {
		switch {
		case strings.HasSuffix(it.Type, "_output"):
			p.results++
		case it.Role == "user" && !strings.HasPrefix(contentText(it.Content), "# AGENTS.md"):
			p.say(contentText(it.Content))
		}
	}
	return p, nil
}

// A responder writes the items of a response, one after the other.
type responder struct {
	*reply
	id, status string
	sequence   int
	output     []object
}

func writeResponses(o *reply, a answer) {
	w := &responder{reply: o, id: o.id("resp_"), status: "in_progress"}
	w.send("response.created", object{"response": w.response()})
	if a.reasoning != "" {
		w.reasoning(a.reasoning)
	}
	if a.text != "" {
		w.message(a.text)
	}
	for _, c := range a.calls {
		w.call(c)
	}
	w.status = "completed"
	if !o.prompt.stream {
		writeJSON(o.w, w.response())
		return
	}
	w.send("response.completed", object{"response": w.response()})
}

// send writes an event if the answer is streamed.
func (w *responder) send(typ string, v object) {
	if !w.prompt.stream {
		return
	}
	v["type"], v["sequence_number"] = typ, w.sequence
	w.sequence++
	w.event(typ, v)
}

func (w *responder) response() object {
	output := w.output
	if output == nil {
		output = []object{}
	}
	r := object{
		"id": w.id, "object": "response", "created_at": time.Now().Unix(), "status": w.status,
		"model": w.prompt.model, "output": output, "tools": []object{}, "parallel_tool_calls": true,
	}
	if w.status == "completed" {
		r["usage"] = object{
			"input_tokens": inputTokens, "input_tokens_details": object{"cached_tokens": cachedTokens},
			"output_tokens": outputTokens, "output_tokens_details": object{"reasoning_tokens": reasoningTokens},
			"total_tokens": inputTokens + outputTokens,
		}
	}
	return r
}

// item writes an item: its beginning, its deltas and its final form.
func (w *responder) item(begin, end object, between func(at object)) {
	index := len(w.output)
	w.send("response.output_item.added", object{"output_index": index, "item": begin})
	between(object{"item_id": begin["id"], "output_index": index})
	w.output = append(w.output, end)
	w.send("response.output_item.done", object{"output_index": index, "item": end})
}

// with returns the members of at and more.
func with(at object, more object) object {
	all := object{}
	for _, o := range []object{at, more} {
		for k, v := range o {
			all[k] = v
		}
	}
	return all
}

func (w *responder) reasoning(text string) {
	begin := object{"type": "reasoning", "id": w.reply.id("rs_"), "summary": []object{}}
	part := object{"type": "summary_text", "text": text}
	w.item(begin, with(begin, object{"summary": []object{part}}), func(at object) {
		at["summary_index"] = 0
		w.send("response.reasoning_summary_part.added", with(at, object{"part": object{"type": "summary_text", "text": ""}}))
		for _, piece := range words(text) {
			w.send("response.reasoning_summary_text.delta", with(at, object{"delta": piece}))
		}
		w.send("response.reasoning_summary_text.done", with(at, object{"text": text}))
		w.send("response.reasoning_summary_part.done", with(at, object{"part": part}))
	})
}

func (w *responder) message(text string) {
	begin := object{"type": "message", "id": w.reply.id("msg_"), "role": "assistant", "status": "in_progress", "content": []object{}}
	part := object{"type": "output_text", "text": text, "annotations": []object{}}
	w.item(begin, with(begin, object{"status": "completed", "content": []object{part}}), func(at object) {
		at["content_index"] = 0
		w.send("response.content_part.added", with(at, object{"part": object{"type": "output_text", "text": "", "annotations": []object{}}}))
		w.words(text, func(piece string) { w.send("response.output_text.delta", with(at, object{"delta": piece})) })
		w.send("response.output_text.done", with(at, object{"text": text}))
		w.send("response.content_part.done", with(at, object{"part": part}))
	})
}

func (w *responder) call(c call) {
	begin := object{
		"type": "function_call", "id": w.reply.id("fc_"), "call_id": w.reply.id("call_"), "name": c.name, "arguments": "", "status": "in_progress",
	}
	w.item(begin, with(begin, object{"status": "completed", "arguments": string(c.args)}), func(at object) {
		pieces(c.args, func(piece string) { w.send("response.function_call_arguments.delta", with(at, object{"delta": piece})) })
		w.send("response.function_call_arguments.done", with(at, object{"arguments": string(c.args)}))
	})
}
