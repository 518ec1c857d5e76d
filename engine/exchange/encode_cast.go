package exchange

import (
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// maxTerminals is how many terminals are listed when the caller has to choose one.
const maxTerminals = 50

// chooseTerminal returns the terminal to record.
func chooseTerminal(src *Source) error {
	var all []string
	seen := map[string]bool{}
	for e, err := range src.all() {
		if err != nil {
			return err
		}
		if e.Channel != tapedeck.ChannelTerminal {
			continue
		}
		id := str(object(e.Data)["terminal"])
		if id == src.Terminal && id != "" {
			return nil
		}
		if !seen[id] && len(all) < maxTerminals {
			seen[id] = true
			all = append(all, id)
		}
	}
	switch {
	case len(all) == 0:
		return tapedeck.Errorf(tapedeck.Invalid, "session %s has no terminal to record", src.Session.ID)
	case src.Terminal != "":
		return tapedeck.Errorf(tapedeck.Invalid, "session %s has no terminal %q", src.Session.ID, short(src.Terminal)).
			WithHint("it has: %s", strings.Join(all, ", "))
	case len(all) > 1:
		return tapedeck.Errorf(tapedeck.Invalid, "session %s has several terminals", src.Session.ID).
			WithHint("name one of: %s", strings.Join(all, ", "))
	}
	src.Terminal = all[0]
	return nil
}

// maxMarks is the largest number of bookmarks of a session that become markers of
// a recording.
const maxMarks = 10_000

// marks returns the labels of bookmarks, by the event that they mark, and whether the
// events have times of their own. A bookmark can be much later than its event, but a recording
// has its markers in order of time.
func marks(src *Source) (found map[int64][]string, timed bool, _ error) {
	var clock view.Clock
	found, n := map[int64][]string{}, 0
	for e, err := range src.all() {
		if err != nil {
			return nil, false, err
		}
		clock.Apply(&e)
		if e.Type != tapedeck.BookmarkAdded {
			continue
		}
		if d, err := payload.DecodeAs[payload.BookmarkAdded](e); err == nil && n < maxMarks {
			found[d.Offset] = append(found[d.Offset], d.Label)
			n++
		}
	}
	return found, clock.DurationMS > 0, nil
}

// A cast writes the recording of one terminal.
type cast struct {
	*output
	clock view.Clock
	timed bool
	began bool          // the header is written
	start time.Duration // the position of the first event of the terminal
	n     int           // number of events of the terminal so far
	last  float64

	shown, typed payload.Halves
}

// eventTakes is how long a recording shows an event if no event has a time of its own.
const eventTakes = 200 * time.Millisecond

// position returns the position of the current event in the recording.
func (c *cast) position() time.Duration {
	if !c.timed {
		return time.Duration(c.n) * eventTakes
	}
	return time.Duration(c.clock.DurationMS) * time.Millisecond
}

// writeCast writes an asciicast of version 2. Its clock is that of the recording, and
// begins with the first event of the terminal. Bookmarks of later events become markers.
func writeCast(w *output, src *Source) error {
	marked, timed, err := marks(src)
	if err != nil {
		return err
	}
	c := &cast{output: w, timed: timed}
	for e, err := range src.all() {
		if err != nil {
			return err
		}
		c.clock.Apply(&e)
		m := object(e.Data)
		ours := e.Channel == tapedeck.ChannelTerminal && str(m["terminal"]) == src.Terminal
		for _, label := range marked[e.Offset] {
			if c.began {
				c.line(c.position()-c.start, "m", label)
			}
		}
		if !ours {
			continue
		}
		if !c.began {
			if err := c.header(&e, src.Session.Title); err != nil {
				return err
			}
			if e.Type == tapedeck.TerminalResize {
				continue // the header has it
			}
		}
		c.event(&e, m)
		c.n++
		if err := c.failed(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cast) header(e *tapedeck.Event, title string) error {
	c.began, c.start = true, c.position()
	h := struct {
		Version   int    `json:"version"`
		Width     int    `json:"width"`
		Height    int    `json:"height"`
		Timestamp int64  `json:"timestamp"`
		Title     string `json:"title,omitempty"`
	}{2, 80, 24, e.Time.Unix(), title}
	if d, err := payload.DecodeAs[payload.TerminalResize](*e); e.Type == tapedeck.TerminalResize && err == nil && d.Cols > 0 && d.Rows > 0 {
		h.Width, h.Height = d.Cols, d.Rows
	}
	b, err := marshal(h)
	c.string(string(b), "\n")
	return err
}

func (c *cast) event(e *tapedeck.Event, m tapedeck.Members) {
	at := c.position() - c.start
	switch e.Type {
	case tapedeck.TerminalOutput:
		c.outputs(e, at, jsonobj.PieceOf(m["data"]))
	case tapedeck.TerminalInput:
		c.words(at, "i", &c.typed, jsonobj.PieceOf(m["data"]))
	case tapedeck.TerminalResize:
		if d, err := payload.DecodeAs[payload.TerminalResize](*e); err == nil {
			c.line(at, "r", strconv.Itoa(d.Cols)+"x"+strconv.Itoa(d.Rows))
		}
	}
}

// outputs writes joined output at the times at which its parts arrived.
func (c *cast) outputs(e *tapedeck.Event, at time.Duration, s payload.Piece) {
	d, err := payload.DecodeAs[payload.TerminalOutput](*e)
	if err == nil {
		for _, cut := range d.Cuts {
			n := int(cut[0])
			if n < 0 || n > len(s) {
				break
			}
			c.words(at+time.Duration(cut[1])*time.Millisecond, "o", &c.shown, s[:n])
			s = s[n:]
		}
	}
	c.words(at, "o", &c.shown, s)
}

// words writes what a terminal shows or gets. A player decodes each line by itself, so the
// line of a half would show no character.
func (c *cast) words(at time.Duration, code string, halves *payload.Halves, s payload.Piece) {
	if text := halves.Next(s); text != "" {
		c.line(at, code, text)
	}
}

// line writes an event. The time of a recording must not go back, but clocks can.
func (c *cast) line(at time.Duration, code, data string) {
	c.last = max(c.last, at.Seconds())
	c.string("[", strconv.FormatFloat(c.last, 'f', -1, 64), ", \"", code, "\", ", string(quoted(data)), "]\n")
}
