package exchange

import (
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
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

// marks returns the labels of bookmarks, by the event that they mark. A bookmark
// can be much later than its event, but a recording has its markers in order of
// time.
func marks(src *Source) (map[int64][]string, error) {
	found, n := map[int64][]string{}, 0
	for e, err := range src.all() {
		if err != nil {
			return nil, err
		}
		if e.Type != tapedeck.BookmarkAdded {
			continue
		}
		if d, err := payload.DecodeAs[payload.BookmarkAdded](e); err == nil && n < maxMarks {
			found[d.Offset] = append(found[d.Offset], d.Label)
			n++
		}
	}
	return found, nil
}

// A cast writes the recording of one terminal.
type cast struct {
	*output
	start time.Time
	last  float64
}

// writeCast writes an asciicast of version 2. Its clock begins with the first
// event of the terminal. Bookmarks of later events become markers.
func writeCast(w *output, src *Source) error {
	c := &cast{output: w}
	marked, err := marks(src)
	if err != nil {
		return err
	}
	for e, err := range src.all() {
		if err != nil {
			return err
		}
		m := object(e.Data)
		ours := e.Channel == tapedeck.ChannelTerminal && str(m["terminal"]) == src.Terminal
		for _, label := range marked[e.Offset] {
			if !c.start.IsZero() {
				c.line(e.Time.Sub(c.start), "m", label)
			}
		}
		if !ours {
			continue
		}
		if c.start.IsZero() {
			if err := c.header(&e, src.Session.Title); err != nil {
				return err
			}
			if e.Type == tapedeck.TerminalResize {
				continue // the header has it
			}
		}
		c.event(&e, m)
		if err := c.failed(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cast) header(e *tapedeck.Event, title string) error {
	c.start = e.Time
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
	at := e.Time.Sub(c.start)
	switch e.Type {
	case tapedeck.TerminalOutput:
		c.outputs(e, at, str(m["data"]))
	case tapedeck.TerminalInput:
		c.line(at, "i", str(m["data"]))
	case tapedeck.TerminalResize:
		if d, err := payload.DecodeAs[payload.TerminalResize](*e); err == nil {
			c.line(at, "r", strconv.Itoa(d.Cols)+"x"+strconv.Itoa(d.Rows))
		}
	}
}

// outputs writes joined output at the times at which its parts arrived.
func (c *cast) outputs(e *tapedeck.Event, at time.Duration, s string) {
	d, err := payload.DecodeAs[payload.TerminalOutput](*e)
	if err == nil {
		for _, cut := range d.Cuts {
			n := int(cut[0])
			if n < 0 || n > len(s) {
				break
			}
			c.line(at+time.Duration(cut[1])*time.Millisecond, "o", s[:n])
			s = s[n:]
		}
	}
	if s != "" {
		c.line(at, "o", s)
	}
}

// line writes an event. The time of a recording must not go back, but clocks can.
func (c *cast) line(at time.Duration, code, data string) {
	c.last = max(c.last, at.Seconds())
	c.string("[", strconv.FormatFloat(c.last, 'f', -1, 64), ", \"", code, "\", ", string(quoted(data)), "]\n")
}
