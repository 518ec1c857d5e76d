package narrate

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// Bounds of what an agent is told of what happened before.
const (
	maxPassage = 16 << 10 // bytes of one message
	maxAnswer  = 2 << 10  // bytes of what a tool answered, and of its arguments
	maxParts   = 4000     // messages and calls that are kept while reading
)

// A passage is a message or a call in a history.
type passage struct {
	who  string
	id   string // of the message or the call
	text strings.Builder
	left int  // bytes that may still come
	cut  bool // there was more
	open bool // it is a call without a result
}

func (p *passage) add(s string) {
	if len(s) > p.left {
		s, p.cut = strings.ToValidUTF8(s[:p.left], ""), true
	}
	p.left -= len(s)
	p.text.WriteString(s)
}

// A history is a conversation that is being told.
type history struct {
	max      int
	passages []*passage
	left     int // how many there were before them
	message  map[string]*passage
	call     map[string]*passage
	said     map[string]bool // ids of whole messages
}

// History returns the conversation of a thread as a text that an agent can be
// told, "" if there was none. It has about max bytes at most: of a long one the
// beginning is left out.
func History(ctx context.Context, thread string, max int, events iter.Seq2[tapedeck.Event, error]) (string, error) {
	h := &history{max: max, message: map[string]*passage{}, call: map[string]*passage{}, said: map[string]bool{}}
	if events == nil {
		return "", nil
	}
	for e, err := range events {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return "", err
		}
		if e.ThreadName() == thread || thread == "" {
			h.add(e)
		}
	}
	return h.String(), nil
}

func (h *history) passage(who, id string, max int) *passage {
	if len(h.passages) == maxParts {
		for _, p := range h.passages[:maxParts/2] {
			delete(h.message, p.id)
			delete(h.call, p.id)
		}
		h.passages = append(h.passages[:0], h.passages[maxParts/2:]...)
		h.left += maxParts / 2
	}
	p := &passage{who: who, id: id, left: max}
	h.passages = append(h.passages, p)
	return p
}

func (h *history) add(e tapedeck.Event) {
	data, err := payload.Decode(e)
	if err != nil {
		return // what cannot be read is not told
	}
	switch d := data.(type) {
	case payload.MessageAdded:
		h.whole(&d.Message)
	case payload.TextMessageStart:
		if h.message[d.MessageID] == nil {
			h.message[d.MessageID] = h.passage("Assistant", d.MessageID, maxPassage)
		}
	case payload.TextMessageContent:
		if p := h.message[d.MessageID]; p != nil {
			p.add(d.Delta)
		}
	case payload.ToolCallStart:
		h.called(d.ToolCallID, d.ToolCallName)
	case payload.ToolCallArgs:
		if p := h.call[d.ToolCallID]; p != nil {
			p.add(d.Delta)
		}
	case payload.ToolCallResult:
		m := payload.Message{Content: d.Content}
		h.answered(d.ToolCallID, m.Text())
	}
}

// called begins the passage of a tool call. It reports false if there is one.
func (h *history) called(id, name string) bool {
	if h.call[id] != nil {
		return false
	}
	h.call[id] = h.passage("Tool "+brief(name, 100), id, maxAnswer)
	h.call[id].open = true
	return true
}

func (h *history) answered(id, text string) {
	if p := h.call[id]; p != nil {
		fmt.Fprintf(&p.text, "\n→ %s", brief(text, maxAnswer))
		p.open = false
	}
}

func (h *history) whole(m *payload.Message) {
	if h.said[m.ID] {
		return
	}
	h.said[m.ID] = true
	switch m.Role {
	case payload.RoleUser:
		h.passage("User", m.ID, maxPassage).add(m.Text())
	case payload.RoleAssistant:
		h.passage("Assistant", m.ID, maxPassage).add(m.Text())
		for _, k := range m.ToolCalls {
			if h.called(k.ID, k.Function.Name) {
				h.call[k.ID].add(k.Function.Arguments)
			}
		}
	case payload.RoleTool:
		h.answered(m.ToolCallID, cmp.Or(m.Text(), m.Error))
	}
}

// String returns the newest passages that fit.
func (h *history) String() string {
	size, first := 0, len(h.passages)
	for first > 0 && size < h.max {
		first--
		size += h.passages[first].text.Len() + len(h.passages[first].who) + 4
	}
	var b strings.Builder
	for _, p := range h.passages[first:] {
		if p.text.Len() == 0 && !p.open {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s", p.who, p.text.String())
		if p.cut {
			b.WriteString(" …")
		}
		if p.open {
			b.WriteString("\n→ [no result; it may have taken effect]")
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return ""
	}
	head := "[CONVERSATION SO FAR]\nThis conversation began elsewhere. What was said and done:\n"
	if left := h.left + first; left > 0 {
		head += fmt.Sprintf("(%d earlier parts are left out.)\n", left)
	}
	return head + b.String() + "[END OF CONVERSATION SO FAR]"
}

// brief returns the beginning of a text.
func brief(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + " …"
}
