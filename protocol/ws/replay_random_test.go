package ws

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/view"
)

// A panel is what a page shows of an element. It finds a call by its tool, as the protocol's
// own description does, which has no ids of calls.
type panel struct {
	messages, thinking, tools []string

	texts   map[string]int // the places of messages, by id
	running map[string]int // the places of running calls, by the name of the tool
}

func (p *panel) restore(h *history) {
	*p = panel{texts: map[string]int{}, running: map[string]int{}}
	for _, m := range h.Messages {
		p.texts[m.ID] = len(p.messages)
		p.messages = append(p.messages, m.Content.(string))
	}
	for _, t := range h.Thinking {
		p.thinking = append(p.thinking, t.Message)
	}
	for _, t := range h.Tools {
		if t.Status == string(tapedeck.StatusRunning) {
			p.running[t.Name] = len(p.tools)
		}
		p.tools = append(p.tools, fmt.Sprintf("%s %s %s %s", t.ID, t.Name, t.Args, t.Result))
	}
}

// shown returns what a user sees. A live call comes when its arguments are complete, a
// snapshot has the calls in the order in which they began.
func (p *panel) shown() [3][]string {
	return [3][]string{p.messages, p.thinking, slices.Sorted(slices.Values(p.tools))}
}

// apply applies a live message. It reports false if the message does not fit.
func (p *panel) apply(m *replayMessage) bool {
	at, known := p.texts[m.MessageID]
	switch m.Type {
	case typeTextStart:
		if !known {
			p.texts[m.MessageID] = len(p.messages)
			p.messages = append(p.messages, "")
		}
	case typeTextContent:
		if !known {
			return false
		}
		p.messages[at] += string(*m.Delta)
		return p.messages[at] == m.Content.Whole()
	case typeThinking:
		p.thinking = append(p.thinking, m.Message)
	case typeToolStart:
		p.running[m.ToolName] = len(p.tools)
		p.tools = append(p.tools, fmt.Sprintf("%s %s %s ", m.ToolCallID, m.ToolName, m.ToolArgs))
	case typeToolEnd:
		at, running := p.running[m.ToolName]
		if !running {
			return false
		}
		p.tools[at] += string(m.Result)
		delete(p.running, m.ToolName)
	}
	return true
}

// drawRuns returns the events of one or two runs in the thread of the element e: texts that
// may be opened again, and thoughts and calls in pieces. The second run uses the ids of the
// first again, and people use those of the agent.
func drawRuns(t *rapid.T) (events []tapedeck.Event) {
	said := map[string]bool{} // by people
	for run := range rapid.IntRange(1, 2).Draw(t, "runs") {
		add := func(typ, format string, args ...any) {
			events = append(events, tapedeck.Event{
				Offset: int64(len(events)), Type: typ, Channel: tapedeck.ChannelChunks, Thread: "thread_e", Invocation: fmt.Sprint("r", run), Data: json.RawMessage(fmt.Sprintf(format, args...)),
			})
		}
		add(tapedeck.RunStarted, `{"runId":"r%d"}`, run)
		open, thoughts := map[string]func(){}, map[string]bool{} // what ends what is open; the ids of thoughts
		for step := range rapid.IntRange(0, 25).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id")
			switch kind := rapid.SampledFrom([]string{"text", "text", "thought", "call", "end", "end", "whole"}).Draw(t, "kind"); kind {
			case "text":
				if open[kind+id] == nil {
					add(tapedeck.TextMessageStart, `{"messageId":"m%s"}`, id)
					open[kind+id] = func() { add(tapedeck.TextMessageEnd, `{"messageId":"m%s"}`, id) }
				}
				add(tapedeck.TextMessageContent, `{"messageId":"m%s","delta":"%d "}`, id, step)
			case "thought":
				if open[kind] == nil {
					id := rapid.SampledFrom([]string{fmt.Sprint("t", run, step), "m" + id}).Draw(t, "id of the thought") // also that of a text
					if thoughts[id] {                                                                                    // live, a thought that is opened again has a message for each part
						id = fmt.Sprint("t", run, step)
					}
					thoughts[id] = true
					add(tapedeck.ReasoningMessageStart, `{"messageId":"%s"}`, id)
					add(tapedeck.ReasoningMessageContent, `{"messageId":"%s","delta":"%d "}`, id, step)
					open[kind] = func() {
						add(tapedeck.ReasoningMessageContent, `{"messageId":"%s","delta":"end"}`, id)
						add(tapedeck.ReasoningMessageEnd, `{"messageId":"%s"}`, id)
					}
				}
			case "call":
				if open[kind+id] == nil {
					c := "c" + id
					add(tapedeck.ToolCallStart, `{"toolCallId":"%s","toolCallName":"tool_%s"}`, c, id)
					add(tapedeck.ToolCallArgs, `{"toolCallId":"%s","delta":"{\"n\":"}`, c)
					open[kind+id] = func() {
						add(tapedeck.ToolCallArgs, `{"toolCallId":"%s","delta":"%d}"}`, c, step)
						add(tapedeck.ToolCallEnd, `{"toolCallId":"%s"}`, c)
						add(tapedeck.ToolCallResult, `{"messageId":"%sr","toolCallId":"%s","content":"done"}`, c, c)
					}
				}
			case "whole":
				id := "m" + id
				if said[id] { // it would replace what they have said
					id = fmt.Sprint("w", run, step)
				}
				said[id] = true
				add(tapedeck.MessageAdded, `{"message":{"id":%q,"role":"user","content":"hello"}}`, id)
			case "end":
				for _, what := range slices.Sorted(maps.Keys(open)) {
					open[what]()
					delete(open, what)
					break
				}
			}
		}
		for _, what := range slices.Sorted(maps.Keys(open)) {
			open[what]()
		}
		add(tapedeck.RunFinished, `{"runId":"r%d"}`, run)
	}
	return events
}

func snapshotOf(t *rapid.T, events []tapedeck.Event) *view.Snapshot {
	var list iter.Seq2[tapedeck.Event, error] = func(yield func(tapedeck.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
	c, err := view.Fold(list, view.NewTimeline(nil), int64(len(events)))
	if err != nil {
		t.Fatal(err)
	}
	s := c.Snapshot()
	return &s
}

// TestPageAtAnyPoint: a page that asks for the history at any point of random runs, and
// applies the live messages after it, shows what a page shows that asks at the end.
func TestPageAtAnyPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawRuns(t)
		var want panel
		want.restore(historyOf(snapshotOf(t, events)))
		for from := range len(events) + 1 {
			var page panel
			now := snapshotOf(t, events[:from])
			page.restore(historyOf(now))
			out := &replayEncoder{elements: newElements(), options: replayOptions{delta: true, content: true, user: true}}
			out.begin(now)
			names := aguiwire.NewNaming()
			names.Learn(now, aguiwire.OpenRun(now))
			for i := range events[from:] {
				e := &events[from+i]
				if k, ok := out.reopens(e); ok {
					out.restore(k, snapshotOf(t, events[:e.Offset]))
				}
				for _, m := range out.encode(e, &names) {
					if !page.apply(m) {
						t.Fatalf("from %d: at %d the page cannot apply %+v", from, e.Offset, m)
					}
				}
			}
			if d := cmp.Diff(want.shown(), page.shown()); d != "" {
				t.Fatalf("from %d (-at the end +live): %s", from, d)
			}
		}
	})
}

// historyOf returns the history of the element "e".
func historyOf(s *view.Snapshot) *history {
	h := newHistory("e")
	h.add(h.ThreadID, nil, s, true)
	return h
}
