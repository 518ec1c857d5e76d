package views

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// text shows the text of agents, with an end of line after each message.
//
// A reader gets bytes and cannot take any back. So half of a character at the end of a
// delta is shown with the delta that has the other half, and never if none has. It is not
// shown as U+FFFD at the end of the message: every reader that begins there would have to
// read back, and nearly no message has a half.
type text struct {
	Source
	session string
}

func newText(from Source, session string, _ int64) Fold { return text{from, session} }

// Size implements [Fold].
func (text) Size() int { return 0 }

// Apply implements [Fold].
func (t text) Apply(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	switch e.Type {
	case tapedeck.TextMessageContent:
		d := textDeltaOf(e)
		before, err := t.half(ctx, e, &d)
		if err != nil {
			return out, err
		}
		halves := payload.Halves{Held: before}
		if s := halves.Next(d.Delta); s != "" {
			out = append(out, []byte(s))
		}
	case tapedeck.TextMessageEnd:
		out = append(out, []byte{'\n'})
	}
	return out, nil
}

type textDelta struct {
	MessageID string        `json:"messageId"`
	Delta     payload.Piece `json:"delta"`
}

func textDeltaOf(e *tapedeck.Event) (d textDelta) {
	_ = json.Unmarshal(e.Data, &d) // a member of another type counts as absent, and so does an erased one
	return d
}

// half returns the half with which the delta before e ends, if e begins with the other
// one, otherwise "".
func (t text) half(ctx context.Context, e *tapedeck.Event, d *textDelta) (payload.Piece, error) {
	if !d.Delta.EndsCharacter() {
		return "", nil
	}
	for from := e.Offset; from > 0 && e.Offset-from < maxSpan; {
		p, err := t.Log.Read(ctx, t.session, tapedeck.Range{From: from, Reverse: true})
		if err != nil {
			return "", err
		}
		for _, r := range p.Records {
			b, err := r.Event()
			if err != nil {
				return "", err
			}
			switch b.Type {
			case tapedeck.TextMessageStart, tapedeck.TextMessageContent, tapedeck.TextMessageEnd:
			default:
				continue
			}
			before := textDeltaOf(&b)
			if before.MessageID != d.MessageID || b.ThreadName() != e.ThreadName() {
				continue
			}
			var halves payload.Halves
			halves.Next(before.Delta)
			return halves.Held, nil
		}
		from = p.Next
	}
	return "", nil
}
