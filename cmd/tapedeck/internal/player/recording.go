package player

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/transcript"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A mark is the kind of a place that users look for in a recording.
type mark byte

const (
	markNone mark = iota
	markUser
	markTool
	markError
)

// A Recording is the transcript of a session with times: at any moment, the player
// shows a prefix of its text. So the text is written once, and the cost of a frame or
// a seek depends on the screen, not on the session.
type Recording struct {
	text   strings.Builder
	steps  []playStep
	events []playEvent

	pen        terminal.Pen // writes to text
	transcript *transcript.Transcript
	clock      view.Clock
}

// A playStep is the moment at which an event, or a delta joined into it, adds text.
type playStep struct {
	at    time.Duration // since the beginning; never decreases
	text  int           // length of the text that is shown then, in bytes
	event int           // index of the event
}

// A playEvent describes an event to the player.
type playEvent struct {
	offset int64
	steps  int // number of steps up to the end of the event
	mark   mark
}

// NewRecording returns an empty recording. Its lines are cut to a width, except
// for text, which is wrapped when it is played.
func NewRecording(color bool, width int) *Recording {
	r := &Recording{}
	r.pen = terminal.Pen{W: &r.text, Color: color, Width: width}
	r.transcript = transcript.New(r.pen)
	return r
}

// Add adds the next event. Its time is its position in the recording, see [view.Clock].
func (r *Recording) Add(e *tapedeck.Event) error {
	r.clock.Apply(e)
	at := time.Duration(r.clock.DurationMS) * time.Millisecond
	for _, part := range parts(e) {
		if err := r.transcript.Print(&part.event); err != nil {
			return err
		}
		r.step(at + part.after)
	}
	r.events = append(r.events, playEvent{offset: e.Offset, steps: len(r.steps), mark: markOf(e)})
	return nil
}

func (r *Recording) step(at time.Duration) {
	s := playStep{at: at, text: r.text.Len(), event: len(r.events)}
	if n := len(r.steps); n > 0 {
		s.at = max(s.at, r.steps[n-1].at) // a delta that was joined may have arrived later
	}
	r.steps = append(r.steps, s)
}

// eventTakes is how long an event is shown if no event has a time of its own.
const eventTakes = 200 * time.Millisecond

// byEvents reports whether the player moves along the events, because they have no times
// of their own.
func (r *Recording) byEvents() bool { return r.clock.Axis == view.AxisEvents }

// complete prepares the recording for a player. If the events have no times, each is shown
// for the same time.
func (r *Recording) complete() {
	if !r.byEvents() {
		return
	}
	for i := range r.steps {
		r.steps[i].at = time.Duration(r.steps[i].event) * eventTakes
	}
}

// duration returns how long the recording plays.
func (r *Recording) duration() time.Duration {
	if len(r.steps) == 0 {
		return 0
	}
	return r.steps[len(r.steps)-1].at
}

// An eventPart is an event that has one of the joined deltas only.
type eventPart struct {
	event tapedeck.Event
	after time.Duration // since the time of the event
}

// parts splits an event into the deltas that were joined in it. An event without
// cuts, or with invalid ones, is one part.
func parts(e *tapedeck.Event) []eventPart {
	whole := []eventPart{{event: *e}}
	switch e.Type {
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent:
	default:
		return whole // other events are not shown while they stream
	}
	var d struct {
		MessageID string        `json:"messageId"`
		Delta     payload.Piece `json:"delta"`
		Cuts      []payload.Cut `json:"cuts"`
	}
	if json.Unmarshal(e.Data, &d) != nil || len(d.Cuts) < 2 {
		return whole
	}
	var out []eventPart
	for _, cut := range d.Cuts {
		n := cut[0]
		if n < 0 || n > int64(len(d.Delta)) || !utf8.ValidString(d.Delta[:n].Whole()) {
			return whole
		}
		p := *e
		p.Data, _ = json.Marshal(map[string]payload.Piece{"messageId": payload.Piece(d.MessageID), "delta": d.Delta[:n]}) // they can always be encoded
		out = append(out, eventPart{p, time.Duration(cut[1]) * time.Millisecond})
		d.Delta = d.Delta[n:]
	}
	if d.Delta != "" {
		return whole
	}
	return out
}

func markOf(e *tapedeck.Event) mark {
	switch e.Type {
	case tapedeck.MessageAdded:
		var m struct{ Message struct{ Role string } }
		if json.Unmarshal(e.Data, &m) == nil && m.Message.Role == "user" {
			return markUser
		}
	case tapedeck.ToolCallStart:
		return markTool
	case tapedeck.RunError:
		return markError
	case tapedeck.ToolCallResult:
		if transcript.ToolFailed(e) {
			return markError
		}
	}
	return markNone
}
