// Package exchange converts files to sessions and sessions to files. It uses no
// store.
//
// A [Decoder] reads exported conversations, and recordings of other programs. Its
// input is bytes; its output is the events of sessions, in an order that an
// [order.Verifier] accepts. It keeps one line of the input and the ids of a
// conversation in memory. Only an input that is one JSON document over several
// lines is kept as a whole.
//
// [Encode] writes a session in one of several formats while it reads it, without
// the parts that a [Redactor] leaves out.
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

// The formats of imports, besides [NDJSON] and [Asciicast].
const (
	OpenAIMessages = "openai-messages" // messages of chat completions
	ClaudeCode     = "claude-code"     // a session file of Claude Code
	AGUI           = "agui"            // events of AG-UI
	Auto           = "auto"            // one of the others, determined by the first line
)

// Formats returns the names of all formats of imports except [Auto].
func Formats() []string { return []string{AGUI, Asciicast, ClaudeCode, NDJSON, OpenAIMessages} }

// maxSkipped is how many skipped lines are listed, so that an input with only bad
// lines does not fill the memory.
const maxSkipped = 1000

// Options of a decoder. All are optional.
type Options struct {
	Title         string                     // of the session; "" for a title from the content. If there are several sessions, all but the first get a number
	Owner         string                     // of the sessions
	Actor         string                     // of the events of the session itself
	WithoutLabels []string                   // labels in an export that the sessions do not get
	NewID         func(prefix string) string // makes the ids of invocations; nil for [tapedeck.NewID]
	Now           func() time.Time           // when a recording without a time began; nil for [time.Now]
}

// A Decoder reads the events of one input. It can be used once.
type Decoder struct {
	options Options
	format  string
	in      *input
	yield   func(tapedeck.Event, error) bool
	stopped bool // the consumer wants no more events

	session     *session   // the current session; nil for none
	own         *ndjson    // the current session, if it is an export of Tapedeck
	cast        *recording // the current session, if it is a recording
	agui        *agui      // the current session, if it has AG-UI events
	sessions    int        // how many sessions began
	seems       string     // the format of the first value, if it is another one than format; "" for none
	starts      bool       // the event that is being yielded begins a session
	entry       tapedeck.Session
	skipped     []api.LineError
	moreSkipped int // skipped lines that are not in skipped
}

// NewDecoder returns a decoder of r. An unknown format is [tapedeck.Invalid].
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
// other, see [Decoder.Starts]. Each session begins with session.created and ends
// with session.imported, except that one of [NDJSON] is as it was exported. An
// error is the last thing that Events yields; then discard all events before it.
// Input that does not have its format is [tapedeck.Invalid], and a line over the
// limit is [tapedeck.TooLarge].
func (d *Decoder) Events() iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		d.yield = yield
		if err := d.decode(); err != nil && !d.stopped {
			yield(tapedeck.Event{}, err)
		}
	}
}

// Starts reports whether the event that was yielded last begins a session. If so,
// it returns the entry of that session in the input: its id, and whether it was
// closed.
func (d *Decoder) Starts() (tapedeck.Session, bool) { return d.entry, d.starts }

// Format returns the format of the input. With [Auto], the first line determines
// it.
func (d *Decoder) Format() string { return d.format }

// Lines returns how many lines were read so far.
func (d *Decoder) Lines() int { return d.in.lines }

// Skipped returns the lines that were skipped so far, with reasons.
func (d *Decoder) Skipped() []api.LineError {
	if d.moreSkipped == 0 {
		return d.skipped
	}
	last := d.skipped[len(d.skipped)-1]
	reason := fmt.Sprintf("%s; after it %d more were left out", last.Reason, d.moreSkipped)
	return append(slices.Clone(d.skipped[:len(d.skipped)-1]), api.LineError{Line: last.Line, Reason: reason})
}

func (d *Decoder) decode() error {
	if d.format == Auto || d.format == AGUI {
		d.in.lookForEvents()
	}
	for first := true; !d.stopped; first = false {
		rec, err := d.in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && first {
			err = d.settle(rec)
		}
		if err == nil {
			if err = d.line(rec); err != nil && first && d.seems != "" {
				return d.otherFormat()
			}
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
		if d.seems != "" {
			return d.otherFormat()
		}
		return tapedeck.Errorf(tapedeck.Invalid, "there is no conversation in the input").
			WithHint("%s", d.hint())
	}
	return nil
}

// line reads one value of the input. An error ends the import; what can be left
// out is skipped instead.
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

// hint explains why the input may have no conversation.
func (d *Decoder) hint() string {
	if len(d.skipped) == 0 {
		return "it is empty"
	}
	return fmt.Sprintf("is the format %s? Line %d: %s", d.format, d.skipped[0].Line, d.skipped[0].Reason)
}

// skip records that a line, or a part of it, was left out.
func (d *Decoder) skip(line int, format string, args ...any) {
	if len(d.skipped) >= maxSkipped {
		d.moreSkipped++
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

// finish ends the current session, if there is one.
func (d *Decoder) finish() {
	if d.agui != nil {
		d.agui.endAllRuns()
	}
	if d.session != nil {
		d.session.finish()
	}
	d.session, d.agui = nil, nil
}
