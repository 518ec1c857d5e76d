package main

import (
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/payload"
)

// maxHeard is how much of a message that is still being written is kept, in bytes: enough
// for the line that is shown.
const maxHeard = 4 << 10

// hear shows the last line of a message of an agent that does a task, when the message
// ends. It ignores other events, and those of threads that are no task.
func (t *elementTree) hear(e *tapedeck.Event) error {
	b := t.open[t.threads[e.ThreadName()]]
	var d struct {
		MessageID string        `json:"messageId"`
		Role      string        `json:"role"`
		Delta     payload.Piece `json:"delta"`
	}
	if b == nil || !strings.HasPrefix(e.Type, "TEXT_MESSAGE_") || !e.Unpack(&d) {
		return nil
	}
	switch e.Type {
	case tapedeck.TextMessageStart:
		delete(b.heard, d.MessageID)
		if d.Role == "" || d.Role == "assistant" {
			if b.heard == nil {
				b.heard = map[string]string{}
			}
			b.heard[d.MessageID] = ""
		}
	case tapedeck.TextMessageContent:
		if text, open := b.heard[d.MessageID]; open {
			text += string(d.Delta)
			b.heard[d.MessageID] = text[max(0, len(text)-maxHeard):]
		}
	case tapedeck.TextMessageEnd:
		text := b.heard[d.MessageID]
		delete(b.heard, d.MessageID)
		return t.words(b, text)
	}
	return nil
}

// words shows the last line of a text, as far as it fits.
func (t *elementTree) words(b *branch, text string) error {
	text = strings.TrimSpace(strings.ToValidUTF8(payload.Whole(text), ""))
	text = terminal.VisibleLine(text[strings.LastIndexByte(text, '\n')+1:])
	if text == "" {
		return nil
	}
	indent := strings.Repeat("  ", min(b.depth+1, 10))
	return t.pen.Printf("%s%s\n", indent, t.pen.Paint(terminal.Dim, "│ "+terminal.Brief(text, max(20, t.pen.Width-len(indent)-2))))
}
