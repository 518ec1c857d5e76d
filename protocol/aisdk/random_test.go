package aisdk_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A page is a front end: it builds a message from chunks as the AI SDK does, and refuses
// what that refuses.
type page struct {
	id    string
	parts []map[string]any
	open  map[string]map[string]any // texts and reasonings by kind and id
	args  map[string]string         // of calls that are not complete
	ended bool
}

func (p *page) receive(frames []string) error {
	p.open, p.args = map[string]map[string]any{}, map[string]string{}
	for i, raw := range frames {
		if raw == "[DONE]" {
			p.ended = i == len(frames)-1
			continue
		}
		var c map[string]any
		if err := json.Unmarshal([]byte(raw), &c); err != nil {
			return err
		}
		if err := p.add(c); err != nil {
			return fmt.Errorf("chunk %d, %s: %w", i, raw, err)
		}
	}
	return nil
}

func (p *page) add(c map[string]any) error {
	typ, id := fmt.Sprint(c["type"]), fmt.Sprint(c["id"])
	kind, step, _ := strings.Cut(typ, "-")
	switch {
	case p.id == "" && typ != "start":
		return fmt.Errorf("there is no start")
	case typ == "start":
		p.id = fmt.Sprint(c["messageId"])
	case typ == "start-step":
		p.parts = append(p.parts, map[string]any{"type": "step-start"})
	case kind == "text" || kind == "reasoning":
		return p.say(kind, step, kind+id, c)
	case kind == "tool":
		return p.tool(typ, fmt.Sprint(c["toolCallId"]), c)
	case kind == "data":
		for _, old := range p.parts {
			if old["type"] == typ && old["id"] == c["id"] {
				old["data"] = c["data"]
				return nil
			}
		}
		p.parts = append(p.parts, c)
	}
	return nil
}

func (p *page) say(kind, step, key string, c map[string]any) error {
	part := p.open[key]
	switch {
	case step == "start" && part == nil:
		part = map[string]any{"type": kind, "text": "", "state": "done"}
		p.open[key], p.parts = part, append(p.parts, part)
	case part == nil || step == "start":
		return fmt.Errorf("the part is open: %v", part != nil)
	case step == "delta":
		part["text"] = part["text"].(string) + c["delta"].(string)
	default:
		delete(p.open, key)
	}
	return nil
}

func (p *page) tool(typ, id string, c map[string]any) error {
	var part map[string]any
	for _, old := range p.parts {
		if old["toolCallId"] == id {
			part = old
		}
	}
	if part == nil {
		if typ != "tool-input-start" && typ != "tool-input-available" {
			return fmt.Errorf("there is no call")
		}
		part = map[string]any{"type": "tool-" + c["toolName"].(string), "toolCallId": id}
		p.parts = append(p.parts, part)
	}
	switch typ {
	case "tool-input-start":
		p.args[id] = ""
	case "tool-input-delta":
		if _, open := p.args[id]; !open {
			return fmt.Errorf("the input is complete")
		}
		p.args[id] += c["inputTextDelta"].(string)
	case "tool-input-available":
		delete(p.args, id)
		part["state"], part["input"] = "input-available", c["input"]
	case "tool-output-available":
		part["state"], part["output"] = "output-available", c["output"]
	case "tool-output-error":
		part["state"], part["errorText"] = "output-error", c["errorText"]
	}
	return nil
}

// drawRun draws what an agent does: texts, reasonings and calls that overlap, plans and
// activities, with places where it waits. It may end in the middle of everything.
func drawRun(t *rapid.T) (lines []string, waits int) {
	open, calls := []string{}, []string{}
	words := rapid.StringN(0, 6, -1)
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for n := range rapid.IntRange(0, 25).Draw(t, "events") {
		switch kind := rapid.IntRange(0, 7).Draw(t, "kind"); {
		case kind == 0:
			open = append(open, fmt.Sprintf(`"messageId":"m%d"`, n))
			lines = append(lines, fmt.Sprintf(`TEXT_MESSAGE_START {%s}`, open[len(open)-1]))
		case kind == 1 && len(open) > 0:
			lines = append(lines, fmt.Sprintf(`TEXT_MESSAGE_CONTENT {%s,"delta":%s}`, rapid.SampledFrom(open).Draw(t, "open"), quote(words.Draw(t, "words"))))
		case kind == 2 && len(open) > 0:
			lines = append(lines, fmt.Sprintf(`TEXT_MESSAGE_END {%s}`, open[0]))
			open = open[1:]
		case kind == 3:
			calls = append(calls, fmt.Sprint("k", n))
			lines = append(lines, fmt.Sprintf(`TOOL_CALL_START {"toolCallId":"k%d","toolCallName":"find"}`, n),
				fmt.Sprintf(`TOOL_CALL_ARGS {"toolCallId":"k%d","delta":%s}`, n, quote(`{"q":`)))
		case kind == 4 && len(calls) > 0:
			lines = append(lines, fmt.Sprintf(`TOOL_CALL_ARGS {"toolCallId":%q,"delta":%s}`, calls[0], quote(`1}`)), fmt.Sprintf(`TOOL_CALL_END {"toolCallId":%q}`, calls[0]))
			if rapid.Bool().Draw(t, "answered") {
				lines = append(lines, fmt.Sprintf(`TOOL_CALL_RESULT {"messageId":"a%d","toolCallId":%q,"content":%s}`, n, calls[0], quote(words.Draw(t, "answer"))))
			}
			calls = calls[1:]
		case kind == 5:
			lines = append(lines, fmt.Sprintf(`REASONING_MESSAGE_START {"messageId":"r%d","role":"reasoning"}`, n), fmt.Sprintf(`REASONING_MESSAGE_CONTENT {"messageId":"r%d","delta":"hm"}`, n), fmt.Sprintf(`REASONING_MESSAGE_END {"messageId":"r%d"}`, n))
		case kind == 6:
			lines = append(lines, fmt.Sprintf(`ACTIVITY_SNAPSHOT {"messageId":"x%d","activityType":"data-chart","content":{"id":"x%d","data":%d}}`, n%3, n%3, n))
		default:
			lines, waits = append(lines, "wait"), waits+1
		}
	}
	if rapid.Bool().Draw(t, "fails") {
		lines = append(lines, "fail")
	}
	return lines, waits
}

// Whatever an agent does, no chunk is an orphan, and clients that come at any moment have
// in the end what a page has that is loaded later.
func TestAnyRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lines, waits := drawRun(rt)
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = playRun(t, strings.Join(append(lines, "end"), "\n"), waits) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// playRun lets the agent do what a task says. A client comes at each place where the
// agent waits. It returns what is wrong.
func playRun(t *testing.T, task string, waits int) string {
	w := newWorld(t)
	readers := []*reader{w.open("/aisdk/steps", request("c", "u", task))}
	for range waits {
		synctest.Wait()
		late := &reader{w: w}
		late.Send(w.Handler, httptest.NewRequestWithContext(t.Context(), "GET", "/aisdk/steps/c/stream", nil))
		readers = append(readers, late)
		synctest.Wait()
		w.Proceed <- struct{}{}
	}
	<-readers[0].Done
	loaded := w.loaded("c")
	for i, r := range readers {
		<-r.Done
		p := &page{}
		if err := p.receive(dataOf(r.Text())); err != nil || !p.ended {
			return fmt.Sprintf("client %d: %v, ended %v in\n%s", i, err, p.ended, r.Text())
		}
		if len(p.parts) == 0 && len(loaded) == 1 {
			continue // the message has nothing to show
		}
		if diff := cmp.Diff(loaded[1]["parts"], any(anyList(p.parts))); diff != "" || loaded[1]["id"] != p.id {
			return fmt.Sprintf("client %d (-loaded +streamed)\n%s\n%s", i, diff, r.Text())
		}
	}
	return ""
}

// loaded returns the messages of a chat.
func (w *world) loaded(chat string) (list []map[string]any) {
	got := httptest.NewRecorder()
	w.Handler.ServeHTTP(got, httptest.NewRequestWithContext(w.Context(), "GET", "/aisdk/steps/"+chat+"/messages", nil))
	if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil {
		w.Fatal(err)
	}
	return list
}

func dataOf(stream string) (list []string) {
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "data: "); ok {
			list = append(list, data)
		}
	}
	return list
}

func anyList(parts []map[string]any) []any {
	list := make([]any, len(parts))
	for i := range parts {
		list[i] = parts[i]
	}
	return list
}

func asText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
