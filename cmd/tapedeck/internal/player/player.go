// Package player plays a session in a terminal with its own timing. A [Recording]
// collects the events, [Play] plays it.
package player

import (
	"slices"
	"sort"
	"time"
)

// A player plays a recording. It has no clock and no terminal: the caller tells it
// how much time has passed and which keys were pressed.
type player struct {
	*Recording
	position time.Duration // since the beginning
	shown    int           // number of steps that are shown
	playing  bool
	speed    float64
	skipIdle bool
	help     bool
	marks    []mark // the mark of each column of the bar that was drawn last
}

// speeds are the speeds that keys can choose.
var speeds = []float64{0.5, 1, 2, 4, 8, 16}

// While idle time is skipped, a gap longer than idleGap takes idlePlayed.
const (
	idleGap    = 2 * time.Second
	idlePlayed = 300 * time.Millisecond
)

// ended reports whether all steps are shown.
func (p *player) ended() bool { return p.shown == len(p.steps) }

// rate returns how many seconds of the recording pass in one second, until the next
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

// advance plays for the real time d.
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

// wait returns when to draw again: at the next step, but not before a frame and not
// after a tick of the clock. It returns 0 if nothing changes without a key.
func (p *player) wait() time.Duration {
	if !p.playing || p.ended() {
		return 0
	}
	const frame, clock = 33 * time.Millisecond, 100 * time.Millisecond
	need := time.Duration(float64(p.steps[p.shown].at-p.position) / p.rate())
	return min(max(need, frame), clock)
}

// playerKeys are the keys of a player, except those that quit and the digits.
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

// press performs the action of a key.
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

// pause pauses or continues. At the end it plays from the beginning.
func (p *player) pause() {
	if p.playing && p.ended() {
		p.seek(0)
		return
	}
	if p.playing = !p.playing; p.playing && p.ended() {
		p.seek(0)
	}
}

// event returns the index of the newest event that is shown, -1 for none.
func (p *player) event() int {
	if p.shown == 0 {
		return -1
	}
	return p.steps[p.shown-1].event
}

// step goes to an event and pauses.
func (p *player) step(event int) {
	p.playing = false
	p.toEvent(event)
}

// toEvent goes to the moment when an event is complete.
func (p *player) toEvent(i int) {
	if i = min(i, len(p.events)-1); i < 0 {
		p.position, p.shown = 0, 0
		return
	}
	p.shown = p.events[i].steps
	p.position = p.steps[p.shown-1].at
}

// toOffset goes to the event at an offset or, if the recording does not have it, to
// the one before.
func (p *player) toOffset(offset int64) {
	p.toEvent(sort.Search(len(p.events), func(i int) bool { return p.events[i].offset > offset }) - 1)
}

// seek goes to a time since the beginning.
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

// previousMark goes to the previous mark. While it plays, a mark that was passed less
// than a second ago does not count, as in any player: otherwise repeated presses
// would always return to the same mark.
func (p *player) previousMark() {
	grace := time.Duration(0)
	if p.playing {
		grace = time.Duration(float64(time.Second) * p.speed)
	}
	for i := p.event() - 1; i >= 0; i-- {
		e := p.events[i]
		if e.mark != markNone && (i == 0 || p.position-p.steps[e.steps-1].at >= grace) {
			p.toEvent(i)
			return
		}
	}
	p.toEvent(-1)
}

// nextSpeed returns the next higher or lower speed, or s at the end of the list.
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
