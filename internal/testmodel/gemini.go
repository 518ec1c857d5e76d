package testmodel

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// readGemini decodes a request of Gemini's generateContent API. The path has the model,
// and says whether the answer is streamed.
func readGemini(r *http.Request, body []byte) (prompt, error) {
	model, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1beta/models/"), ":")
	if method != "generateContent" && method != "streamGenerateContent" && method != "countTokens" {
		return prompt{}, errors.New("there is no such method")
	}
	var in struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Text             string
				FunctionResponse json.RawMessage
			}
		}
		Tools []struct {
			FunctionDeclarations []struct {
				Name, Description                string
				Parameters, ParametersJSONSchema json.RawMessage
			}
		}
		GenerationConfig struct {
			ResponseMIMEType                   string
			ResponseSchema, ResponseJSONSchema schema
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return prompt{}, err
	}
	p := prompt{model: model, stream: method == "streamGenerateContent"}
	if g := &in.GenerationConfig; g.ResponseMIMEType == "application/json" {
		p.form = &g.ResponseSchema
		if g.ResponseJSONSchema.Properties != nil {
			p.form = &g.ResponseJSONSchema
		}
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			if f.Parameters == nil {
				f.Parameters = f.ParametersJSONSchema
			}
			p.tools = append(p.tools, newTool(f.Name, f.Description, f.Parameters))
		}
	}
	for _, c := range in.Contents {
		for _, part := range c.Parts {
			switch {
			case c.Role == "model":
			case part.FunctionResponse != nil:
				p.results++
			default:
				p.say(part.Text)
			}
		}
	}
	return p, nil
}

func writeGemini(o *reply, a answer) {
	if strings.HasSuffix(o.r.URL.Path, ":countTokens") {
		writeJSON(o.w, object{"totalTokens": inputTokens})
		return
	}
	response := func(parts []object, finish string) object {
		c := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if finish != "" {
			c["finishReason"] = finish
		}
		return object{"candidates": []object{c}, "modelVersion": o.prompt.model, "usageMetadata": object{
			"promptTokenCount": inputTokens, "cachedContentTokenCount": cachedTokens,
			"candidatesTokenCount": outputTokens - reasoningTokens, "thoughtsTokenCount": reasoningTokens,
			"totalTokenCount": inputTokens + outputTokens,
		}}
	}
	var calls []object
	for _, c := range a.calls {
		calls = append(calls, object{"functionCall": object{"name": c.name, "args": c.args}})
	}
	thought := object{"text": a.reasoning, "thought": true}
	if !o.prompt.stream {
		parts := []object{{"text": a.text}}
		if a.reasoning != "" {
			parts = append([]object{thought}, parts...)
		}
		writeJSON(o.w, response(append(parts, calls...), "STOP"))
		return
	}
	if a.reasoning != "" {
		o.event("", response([]object{thought}, ""))
	}
	o.words(a.text, func(piece string) { o.event("", response([]object{{"text": piece}}, "")) })
	for _, c := range calls {
		o.event("", response([]object{c}, ""))
	}
	o.event("", response([]object{{"text": ""}}, "STOP"))
}
