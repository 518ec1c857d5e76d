package player

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// notCalled is on the screen the whole time, so that nobody mistakes a playback for a
// run.
const notCalled = "Playback (the agent is not called)"

var playerHelp = []string{
	"Space      play or pause",
	", .        one event back or forward",
	"[ ]        to the previous or next mark: user message, tool call, error",
	"t e u      to the next tool call, error, user message",
	"0 to 9     to that tenth of the time",
	"g G        to the beginning, to the end (also Home, End)",
	"< >        slower, faster",
	"s          skip idle time (gaps over 2 s)",
	"?          this help",
	"q          quit (also Ctrl-C)",
}

// frame returns the rows of a screen of this size, from top to bottom.
func (p *player) frame(width, height int) []string {
	bars := []string{p.status(width)}
	if height >= 5 {
		bars = []string{p.bar(width), bars[0]}
	}
	rows := p.rows(width, height-len(bars))
	for len(rows) < height-len(bars) {
		rows = append(rows, "")
	}
	return append(rows, bars...)
}

func (p *player) rows(width, n int) []string {
	if n <= 0 {
		return nil
	}
	if p.help {
		rows := wrap(strings.Join(playerHelp, "\n"), width)
		return rows[:min(n, len(rows))]
	}
	shown := 0
	if p.shown > 0 {
		shown = p.steps[p.shown-1].text
	}
	return lastRows(p.text.String()[:shown], width, n)
}

// status returns the line with state, position and speed, and leaves out the parts
// for which there is no room.
func (p *player) status(width int) string {
	state := "‖ paused"
	switch {
	case p.ended():
		state = "■ end"
	case p.playing:
		state = "▶ playing"
	}
	line := state
	if p.byEvents() {
		line += fmt.Sprintf(" event %d of %d (they have no times)", p.event()+1, len(p.events))
	} else {
		line += fmt.Sprintf(" %s / %s", clock(p.position, p.duration()), clock(p.duration(), p.duration()))
	}
	more := []string{notCalled, p.offsets(), strconv.FormatFloat(p.speed, 'f', -1, 64) + "×"}
	if p.skipIdle {
		more = append(more, "idle skipped")
	}
	for _, m := range append(more, "? help") {
		if textWidth(line)+3+textWidth(m) <= width {
			line += " · " + m
		}
	}
	return p.pen.Paint(terminal.Bold, fit(line, width))
}

func (p *player) offsets() string {
	if len(p.events) == 0 {
		return "no events"
	}
	last := strconv.FormatInt(p.events[len(p.events)-1].offset, 10)
	if p.shown == 0 {
		return "offset - of " + last
	}
	return "offset " + strconv.FormatInt(p.events[p.event()].offset, 10) + " of " + last
}

// bar draws the time line with the played part and the marks.
func (p *player) bar(width int) string {
	if len(p.marks) != width {
		p.marks = p.markColumns(width)
	}
	head := p.column(p.position, width)
	var b strings.Builder
	for i, m := range p.marks {
		switch {
		case i == head:
			b.WriteString(p.pen.Paint(terminal.Bold, "●"))
		case m == markError:
			b.WriteString(p.pen.Paint(terminal.Red, "!"))
		case m == markTool:
			b.WriteString(p.pen.Paint(terminal.Yellow, "+"))
		case m == markUser:
			b.WriteString(p.pen.Paint(terminal.Cyan, "›"))
		case i < head:
			b.WriteString("━")
		default:
			b.WriteString(p.pen.Paint(terminal.Dim, "─"))
		}
	}
	return b.String()
}

// markColumns returns the mark of each column of the bar. An error hides a tool call,
// and a tool call hides a message.
func (p *player) markColumns(width int) []mark {
	marks := make([]mark, width)
	for _, e := range p.events {
		i := p.column(p.steps[e.steps-1].at, width)
		marks[i] = max(marks[i], e.mark)
	}
	return marks
}

// column returns the column of a time on the bar.
func (p *player) column(at time.Duration, width int) int {
	if p.duration() == 0 {
		return 0
	}
	return min(width-1, int(float64(at)/float64(p.duration())*float64(width)))
}

// clock formats a time. The shorter the total is, the more precise the format.
func clock(d, total time.Duration) string {
	s := int(d.Seconds())
	switch {
	case total < time.Minute:
		return fmt.Sprintf("0:%02d.%d", s, int(d.Milliseconds()/100)%10)
	case total < time.Hour:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
