package exchange

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// recorded is the id of the terminal of a recording.
const recorded = "terminal"

// maxSeconds is the longest recording; later times would not be valid.
const maxSeconds = 10 * 365 * 24 * 3600

// A recording reads an asciicast.
type recording struct {
	*session
	relative bool // version 3: each time counts from the event before
	start    time.Time
	passed   float64

	output, input payload.Halves // a character can come in two events
}

// castLine reads the header or an event of an asciicast, version 2 or 3.
func (d *Decoder) castLine(rec record) error {
	if m := object(rec.raw); m != nil {
		if d.cast != nil {
			return lineError(rec.line, "is a second header")
		}
		return d.castHeader(rec, m)
	}
	if d.cast == nil {
		return lineError(rec.line, "comes before the header of a recording")
	}
	d.cast.read(rec)
	items, ok := list(rec.raw)
	if !ok || len(items) < 3 {
		d.skip(rec.line, "it is not an event of a recording")
		return nil
	}
	d.cast.event(items)
	return nil
}

func (d *Decoder) castHeader(rec record, m tapedeck.Members) error {
	v := string(m["version"])
	if v != "2" && v != "3" {
		return lineError(rec.line, "is no header of an asciicast of version 2 or 3")
	}
	c := &recording{session: d.newSession(), relative: v == "3"}
	d.cast = c
	c.read(rec)
	c.extra = without(m, setOf("timestamp", "title"))
	c.suggestTitle(fromUser, str(m["title"]))
	c.start = d.castStart(m["timestamp"])
	c.at = c.start
	size := m
	width, height := "width", "height"
	if c.relative {
		size, width, height = object(m["term"]), "cols", "rows"
	}
	if cols, rows := tokens(size[width]), tokens(size[height]); cols != nil && rows != nil && max(*cols, *rows) < 1<<16 {
		c.say(payload.TerminalResize{Terminal: recorded, Cols: int(*cols), Rows: int(*rows)})
	}
	return nil
}

// castStart returns when a recording began. If the recording does not say so, it
// is now; the intervals between the events stay the same.
func (d *Decoder) castStart(raw json.RawMessage) time.Time {
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || seconds <= 0 || seconds > 200e9 {
		return d.options.Now().UTC()
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC()
}

func (c *recording) event(items []json.RawMessage) {
	at, err := strconv.ParseFloat(string(items[0]), 64)
	code, isCode := text(items[1])
	data, isText := text(items[2])
	if c.relative {
		at += c.passed
	}
	if err != nil || !isCode || !isText || math.IsNaN(at) || at < 0 || at > maxSeconds {
		c.d.skip(c.line, "it is not an event of a recording")
		return
	}
	c.passed = max(c.passed, at)
	c.at = c.start.Add(time.Duration(c.passed * float64(time.Second)))
	switch code {
	case "o":
		if data := c.output.Next(jsonobj.PieceOf(items[2])); data != "" {
			c.say(payload.TerminalOutput{Terminal: recorded, Data: data})
		}
	case "i":
		if data := c.input.Next(jsonobj.PieceOf(items[2])); data != "" {
			c.say(payload.TerminalInput{Terminal: recorded, Data: data})
		}
	case "r":
		c.resize(data)
	case "m":
		c.say(payload.BookmarkAdded{Offset: c.events + 1, Label: data})
	case "x":
		c.exit(data)
	default:
		c.d.skip(c.line, "an event of code %s is not known", quoted(short(code)))
	}
}

func (c *recording) resize(data string) {
	cols, rows, _ := strings.Cut(data, "x")
	w, errW := strconv.ParseUint(cols, 10, 16)
	h, errH := strconv.ParseUint(rows, 10, 16)
	if errW != nil || errH != nil {
		c.d.skip(c.line, "it is not the size of a terminal")
		return
	}
	c.say(payload.TerminalResize{Terminal: recorded, Cols: int(w), Rows: int(h)})
}

func (c *recording) exit(data string) {
	p := payload.TerminalExit{Terminal: recorded}
	if code, err := strconv.ParseInt(data, 10, 32); err == nil {
		n := int(code)
		p.Code = &n
	}
	c.say(p)
}

func (c *recording) say(p payload.Payload) {
	c.create()
	e := payload.NewEvent(p)
	e.Time = c.at
	c.events++
	c.d.emit(e)
}
