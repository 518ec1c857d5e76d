// Package exchange turns files into sessions and sessions into files. It knows no
// store.
//
// A [Decoder] reads conversations that were recorded elsewhere, or exported here:
// what comes in is bytes, what comes out are the events of sessions, in an order
// that a [order.Verifier] accepts. Of the input it holds one line at a time,
// and of a conversation its ids. Only an input that is one JSON document over
// several lines is held as a whole.
//
// [Encode] writes a session in one of several formats, as it reads it, without
// what a [Redactor] leaves out.
package exchange

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// The formats of imports, beside [NDJSON] and [Asciicast].
const (
	OpenAIMessages = "openai-messages" // messages of chat completions
	ClaudeCode     = "claude-code"     // a session file of Claude Code
	AGUI           = "agui"            // events of AG-UI
	Auto           = "auto"            // one of the others, as the first line tells
)

// Formats returns the names of all formats of imports but [Auto].
func Formats() []string { return []string{AGUI, Asciicast, ClaudeCode, NDJSON, OpenAIMessages} }

// maxSkipped is how many lines that were left out are named one by one, so that
// an input of nothing else does not fill the memory.
const maxSkipped = 1000

// Options say what the sessions are to be like. All may be empty.
type Options struct {
	Title string                     // of the session; "" for one from the content. Of several sessions all but the first get a number
	Owner string                     // of the sessions
	Actor string                     // of the events of the session itself
	NewID func(prefix string) string // makes the ids of invocations; nil for [tapedeck.NewID]
	Now   func() time.Time           // when a recording without a time began; nil for [time.Now]
}

// A Decoder makes events of one input. It can be used once.
type Decoder struct {
	options Options
	format  string
	in      *input
	yield   func(tapedeck.Event, error) bool
	stopped bool // nobody wants more

	session  *session   // the one that is being made, nil for none
	own      *ndjson    // likewise, of an export of ours
	cast     *recording // the session, if it is a recording
	agui     *agui      // the session, if it is of AG-UI
	sessions int        // made, that one included
	starts   bool       // the event that is being yielded begins a session
	entry    tapedeck.Session
	skipped  []api.LineError
	unnamed  int // further lines that were left out
}

// NewDecoder returns a decoder of r. A format that there is not is
// [tapedeck.Invalid].
func NewDecoder(format string, r io.Reader, o Options) (*Decoder, error) {
	if format != Auto && !slices.Contains(Formats(), format) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "there is no import format %q", short(format)).
			WithHint("the formats are: %s; or auto", strings.Join(Formats(), ", "))
	}
	if o.NewID == nil {
		o.NewID = tapedeck.NewID
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Decoder{options: o, format: format, in: newInput(r)}, nil
}

// Events yields the events of all sessions of the input, one session after the
// other, see [Decoder.Starts]. Each begins with session.created and ends with
// session.imported; but one of [NDJSON] is as it was exported. An error is the
// last thing it yields; what came before is then not to be kept. It is
// [tapedeck.Invalid] for input that is not what the format says, and
// [tapedeck.TooLarge] for a line over the limit.
func (d *Decoder) Events() iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		d.yield = yield
		if err := d.decode(); err != nil && !d.stopped {
			yield(tapedeck.Event{}, err)
		}
	}
}

// Starts reports whether the event that was yielded last begins a session, and
// what the input says of that session as a whole: its id, and whether it was
// closed, if it does.
func (d *Decoder) Starts() (tapedeck.Session, bool) { return d.entry, d.starts }

// Format returns the format of the input; of [Auto], what the first line has told.
func (d *Decoder) Format() string { return d.format }

// Lines returns how many lines were read so far.
func (d *Decoder) Lines() int { return d.in.lines }

// Skipped returns the lines that were left out so far, and why.
func (d *Decoder) Skipped() []api.LineError {
	if d.unnamed == 0 {
		return d.skipped
	}
	last := d.skipped[len(d.skipped)-1]
	reason := fmt.Sprintf("%s; after it %d more were left out", last.Reason, d.unnamed)
	return append(slices.Clone(d.skipped[:len(d.skipped)-1]), api.LineError{Line: last.Line, Reason: reason})
}

func (d *Decoder) decode() error {
	if d.format == Auto || d.format == AGUI {
		d.in.events = d.in.isEventStream()
	}
	for !d.stopped {
		rec, err := d.in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && d.format == Auto {
			d.format, err = d.detect(rec)
		}
		if err == nil {
			err = d.line(rec)
		}
		if err != nil {
			return err
		}
	}
	if err := d.endOwn(); err != nil {
		return err
	}
	d.finish()
	if d.sessions == 0 && !d.stopped {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no conversation in the input").
			WithHint("%s", d.hint())
	}
	return nil
}

// line reads one value of the input. An error ends the import; what can be left
// out is skipped.
func (d *Decoder) line(rec record) error {
	switch d.format {
	case NDJSON:
		return d.ndjsonLine(rec)
	case Asciicast:
		return d.castLine(rec)
	case AGUI:
		d.aguiLine(rec)
	case OpenAIMessages:
		d.openaiLine(rec)
	default:
		d.claudeLine(rec)
	}
	return nil
}

// hint says why there may be nothing in the input.
func (d *Decoder) hint() string {
	if len(d.skipped) == 0 {
		return "it is empty"
	}
	return fmt.Sprintf("is the format %s? Line %d: %s", d.format, d.skipped[0].Line, d.skipped[0].Reason)
}

// skip notes that a line, or a part of it, was left out.
func (d *Decoder) skip(line int, format string, args ...any) {
	if len(d.skipped) >= maxSkipped {
		d.unnamed++
		return
	}
	d.skipped = append(d.skipped, api.LineError{Line: line, Reason: fmt.Sprintf(format, args...)})
}

func (d *Decoder) emit(e tapedeck.Event) {
	if !d.stopped {
		d.stopped = !d.yield(e, nil)
	}
	d.starts = false
}

// finish ends the session that is being made, if there is one.
func (d *Decoder) finish() {
	if d.agui != nil {
		d.agui.endAll()
	}
	if d.session != nil {
		d.session.finish()
	}
	d.session, d.agui = nil, nil
}
