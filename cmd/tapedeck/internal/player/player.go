// Package player plays a session in a terminal with its own timing. A [Recording]
// collects the events, [Play] plays it.
package player

import (
	"slices"
	"sort"
	"time"
)

// A player plays a recording. It has no clock and no terminal: it is told how
// much time has gone by and which keys were pressed.
type player struct {
	*Recording
	position time.Duration // since the beginning
	shown    int           // steps that are shown
	playing  bool
	speed    float64
	skipIdle bool
	help     bool
	marks    []mark // of the bar as it was drawn last
}

// Speeds that the keys choose from.
var speeds = []float64{0.5, 1, 2, 4, 8, 16}

// A gap longer than idleGap is played in idlePlayed when idle time is skipped.
const (
	idleGap    = 2 * time.Second
	idlePlayed = 300 * time.Millisecond
)

// ended reports whether everything is shown.
func (p *player) ended() bool { return p.shown == len(p.steps) }

// rate returns how much of the recording goes by in a second until the next
// step.
func (p *player) rate() float64 {
	last := time.Duration(0)
	if p.shown > 0 {
		last = p.steps[p.shown-1].at
	}
	if gap := p.steps[p.shown].at - last; p.skipIdle && gap > idleGap {
		return p.speed * float64(gap) / float64(idlePlayed)
	}
	return p.speed
}

// advance lets d of real time go by.
func (p *player) advance(d time.Duration) {
	for p.playing && !p.ended() {
		next, rate := p.steps[p.shown].at, p.rate()
		need := time.Duration(float64(next-p.position) / rate)
		if need > d {
			p.position = min(next, p.position+time.Duration(float64(d)*rate))
			return
		}
		d -= need
		p.position = next
		p.shown++
	}
}

// wait returns how long nothing will change on the screen, at least a frame; 0
// for ever.
func (p *player) wait() time.Duration {
	if !p.playing || p.ended() {
		return 0
	}
	const frame, clock = 33 * time.Millisecond, 100 * time.Millisecond
	need := time.Duration(float64(p.steps[p.shown].at-p.position) / p.rate())
	return min(max(need, frame), clock)
}

// playerKeys are the keys of a player, besides those that leave it and the
// digits.
var playerKeys = map[key]func(*player){
	'?':      func(p *player) { p.help = true },
	' ':      (*player).pause,
	'.':      func(p *player) { p.step(p.event() + 1) },
	keyRight: func(p *player) { p.step(p.event() + 1) },
	',':      func(p *player) { p.step(p.event() - 1) },
	keyLeft:  func(p *player) { p.step(p.event() - 1) },
	'<':      func(p *player) { p.speed = nextSpeed(p.speed, false) },
	'>':      func(p *player) { p.speed = nextSpeed(p.speed, true) },
	's':      func(p *player) { p.skipIdle = !p.skipIdle },
	'g':      func(p *player) { p.seek(0) },
	keyHome:  func(p *player) { p.seek(0) },
	'G':      func(p *player) { p.toEvent(len(p.events) - 1) },
	keyEnd:   func(p *player) { p.toEvent(len(p.events) - 1) },
	'[':      (*player).previousMark,
	']':      func(p *player) { p.nextMark(markUser, markTool, markError) },
	't':      func(p *player) { p.nextMark(markTool) },
	'e':      func(p *player) { p.nextMark(markError) },
	'u':      func(p *player) { p.nextMark(markUser) },
}

// press does what a key asks for.
func (p *player) press(k key) (quit bool) {
	do := playerKeys[k]
	switch {
	case k == 'q' || k == keyCtrlC:
		return true
	case p.help:
		p.help = false
	case k >= '0' && k <= '9':
		p.seek(p.duration() * time.Duration(k-'0') / 10)
	case do != nil:
		do(p)
	}
	return false
}

// pause pauses, goes on, or, at the end, begins again.
func (p *player) pause() {
	if p.playing && p.ended() {
		p.seek(0)
		return
	}
	if p.playing = !p.playing; p.playing && p.ended() {
		p.seek(0)
	}
}

// event returns the index of the event that was shown last, -1 for none.
func (p *player) event() int {
	if p.shown == 0 {
		return -1
	}
	return p.steps[p.shown-1].event
}

// step goes to an event and stays there.
func (p *player) step(event int) {
	p.playing = false
	p.toEvent(event)
}

// toEvent goes to the moment at which an event is shown whole.
func (p *player) toEvent(i int) {
	if i = min(i, len(p.events)-1); i < 0 {
		p.position, p.shown = 0, 0
		return
	}
	p.shown = p.events[i].steps
	p.position = p.steps[p.shown-1].at
}

// toOffset goes to the event at an offset, or, if it is not in the recording,
// the one before it.
func (p *player) toOffset(offset int64) {
	p.toEvent(sort.Search(len(p.events), func(i int) bool { return p.events[i].offset > offset }) - 1)
}

// seek goes to a time.
func (p *player) seek(to time.Duration) {
	p.position = to
	p.shown = sort.Search(len(p.steps), func(i int) bool { return p.steps[i].at > to })
}

// nextMark goes to the next event with one of these marks, if there is one.
func (p *player) nextMark(marks ...mark) {
	for i := p.event() + 1; i < len(p.events); i++ {
		if slices.Contains(marks, p.events[i].mark) {
			p.toEvent(i)
			return
		}
	}
}

// previousMark goes to the mark before the one that was passed last or, while
// it is on one, before that. As on any player, a mark passed less than a second
// ago counts as the one it is on, or nobody could get past it while it plays.
func (p *player) previousMark() {
	since := time.Duration(0)
	if p.playing {
		since = time.Duration(float64(time.Second) * p.speed)
	}
	for i := p.event() - 1; i >= 0; i-- {
		e := p.events[i]
		if e.mark != markNone && (i == 0 || p.position-p.steps[e.steps-1].at >= since) {
			p.toEvent(i)
			return
		}
	}
	p.toEvent(-1)
}

// nextSpeed returns the speed above or below one.
func nextSpeed(s float64, up bool) float64 {
	if up {
		i := slices.IndexFunc(speeds, func(x float64) bool { return x > s })
		if i < 0 {
			return s
		}
		return speeds[i]
	}
	for _, x := range slices.Backward(speeds) {
		if x < s {
			return x
		}
	}
	return s
}
