package narrate

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/proposal"
	"github.com/tapedeck/tapedeck/payload"
)

// Limits of the history that an agent receives as text.
const (
	maxPassage = 16 << 10 // bytes of one message
	maxAnswer  = 2 << 10  // bytes of a tool's answer, and of its arguments
	maxParts   = 4000     // messages and calls in memory while reading
)

// A passage is a message or a call in a history.
type passage struct {
	speaker string
	id      string // the id of the message or the call
	text    strings.Builder
	halves  payload.Halves
	space   int  // bytes that still fit
	cut     bool // some text did not fit
	open    bool // a call without a result

	action *tapedeck.PermissionAction // what people were asked about a call; nil for nothing
	title  string                     // the agent's words for a call; "" for none
}

// complete sets the arguments of a call if its agent has reported none. The log has them in
// other events.
func (p *passage) complete() {
	said := p.text.String()
	if told := proposal.Arguments(said, p.action, p.title); told != said {
		p.text.Reset()
		p.write(told)
	}
}

func (p *passage) write(s string) {
	if len(s) > p.space {
		s, p.cut = strings.ToValidUTF8(s[:p.space], ""), true
	}
	p.space -= len(s)
	p.text.WriteString(s)
}

// A history collects the conversation of a thread.
type history struct {
	limit    int
	passages []*passage
	dropped  int // passages that were dropped before the first of passages
	message  map[string]*passage
	call     map[string]*passage
	seen     map[string]bool // ids of the answers of tools that are messages
}

// History returns the conversation of a thread as a text for an agent; "" if there is
// no conversation. thread "" selects all threads. The text has at most about limit
// bytes: the beginning of a long conversation is left out.
func History(ctx context.Context, thread string, limit int, events iter.Seq2[tapedeck.Event, error]) (string, error) {
	h := &history{limit: limit, message: map[string]*passage{}, call: map[string]*passage{}, seen: map[string]bool{}}
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

func (h *history) passage(speaker, id string, limit int) *passage {
	if len(h.passages) == maxParts {
		for _, p := range h.passages[:maxParts/2] {
			delete(h.message, p.id)
			delete(h.call, p.id)
		}
		h.passages = append(h.passages[:0], h.passages[maxParts/2:]...)
		h.dropped += maxParts / 2
	}
	p := &passage{speaker: speaker, id: id, space: limit}
	h.passages = append(h.passages, p)
	return p
}

func (h *history) add(e tapedeck.Event) {
	data, err := payload.Decode(e)
	if err != nil {
		return // an event that cannot be decoded is left out
	}
	switch d := data.(type) {
	case payload.MessageAdded:
		h.whole(e.Invocation, &d.Message)
	case payload.TextMessageStart:
		if id := e.Invocation + "\x00" + d.MessageID; h.message[id] == nil { // agents use an id again in their next run
			h.message[id] = h.passage("Assistant", id, maxPassage)
		}
	case payload.TextMessageContent:
		if p := h.message[e.Invocation+"\x00"+d.MessageID]; p != nil {
			p.write(p.halves.Next(d.Delta))
		}
	case payload.ToolCallStart:
		if h.called(d.ToolCallID, d.ToolCallName) {
			h.call[d.ToolCallID].title = proposal.Title(d.Metadata)
		}
	case payload.PermissionRequested:
		if p := h.call[d.ToolCallID]; p != nil && d.Action != nil {
			p.action = d.Action
		}
	case payload.ToolCallArgs:
		if p := h.call[d.ToolCallID]; p != nil {
			p.write(p.halves.Next(d.Delta))
		}
	case payload.ToolCallResult:
		m := payload.Message{Content: d.Content}
		h.answered(d.ToolCallID, m.Text())
	}
}

// called begins the passage of a tool call. It reports false if the call already has one.
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
		if p.open {
			p.complete()
		}
		fmt.Fprintf(&p.text, "\n→ %s", brief(text, maxAnswer))
		p.open = false
	}
}

func (h *history) whole(invocation string, m *payload.Message) {
	switch m.Role {
	case payload.RoleUser:
		h.replace("User", m.ID, m.Text())
	case payload.RoleAssistant:
		h.replace("Assistant", invocation+"\x00"+m.ID, m.Text())
		for _, k := range m.ToolCalls {
			if h.called(k.ID, k.Function.Name) {
				h.call[k.ID].write(k.Function.Arguments)
			}
		}
	case payload.RoleTool:
		if !h.seen[m.ID] {
			h.seen[m.ID] = true
			h.answered(m.ToolCallID, cmp.Or(m.Text(), m.Error))
		}
	}
}

// replace begins the passage of a message with a text, or gives it another text.
func (h *history) replace(speaker, id, text string) {
	p := h.message[id]
	if p == nil {
		p = h.passage(speaker, id, maxPassage)
		h.message[id] = p
	}
	p.text.Reset()
	p.halves, p.space, p.cut = payload.Halves{}, maxPassage, false
	p.write(text)
}

// String returns the text, with the newest passages that fit.
func (h *history) String() string {
	size, first := 0, len(h.passages)
	for first > 0 && size < h.limit {
		first--
		size += h.passages[first].text.Len() + len(h.passages[first].speaker) + 4
	}
	var b strings.Builder
	for _, p := range h.passages[first:] {
		if p.open {
			p.complete()
		}
		if p.text.Len() == 0 && !p.open {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s", p.speaker, p.text.String())
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
	head := "[CONVERSATION SO FAR]\nThis conversation began elsewhere. The messages and tool calls so far:\n"
	if left := h.dropped + first; left > 0 {
		head += fmt.Sprintf("(%d earlier parts are left out.)\n", left)
	}
	return head + b.String() + "[END OF CONVERSATION SO FAR]"
}

// brief returns at most limit bytes of a text, and marks the cut.
func brief(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + " …"
}
