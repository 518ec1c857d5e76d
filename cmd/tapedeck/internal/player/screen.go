package player

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
)

// A screen is a terminal that shows frames and reads keys. All it knows of what
// is played is in player.
type screen struct {
	in, out       *os.File
	width, height int
}

// What a terminal is told. The other screen leaves what was in the terminal as
// it was; without line wrap a character that is wider than we think is cut off
// and does not push all rows out of place; a synchronized update shows no half
// frames.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	beginFrame  = "\x1b[?2026h\x1b[H"
	endFrame    = "\x1b[?2026l"
)

// Options say how to play a recording.
type Options struct {
	Speed    float64 // how many times faster, 0.5 to 16
	SkipIdle bool    // play long gaps in a moment
	From     int64   // the offset to begin at
}

// Play plays a recording in a terminal until the user leaves or ctx is done. It
// leaves the terminal as it was in any case.
func Play(ctx context.Context, in, out *os.File, r *Recording, o Options) error {
	p := &player{Recording: r, playing: true, speed: o.Speed, skipIdle: o.SkipIdle}
	if o.From > 0 {
		p.toOffset(o.From)
	}
	return (&screen{in: in, out: out}).play(ctx, p)
}

// play plays p and restores the terminal.
func (s *screen) play(ctx context.Context, p *player) (err error) {
	before, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the terminal cannot be used: %w", err)
	}
	defer func() { // also if something panics
		_, werr := s.out.WriteString(leaveScreen)
		err = errors.Join(err, werr, term.Restore(int(s.in.Fd()), before))
	}()
	if _, err := s.out.WriteString(enterScreen); err != nil {
		return err
	}
	resized := make(chan os.Signal, 1)
	notifyResized(resized)
	defer signal.Stop(resized)
	return s.loop(ctx, p, s.keys(), resized)
}

// keys reads keys until the terminal is gone. Nothing ends a read of a
// terminal, so it ends with the program.
func (s *screen) keys() <-chan key {
	keys := make(chan key)
	go func() {
		defer close(keys)
		var rest []byte
		buf := make([]byte, 256)
		for {
			n, err := s.in.Read(buf)
			if err != nil {
				return
			}
			rest = append(rest, buf[:n]...)
			for k, n := nextKey(rest); n > 0; k, n = nextKey(rest) {
				rest = rest[n:]
				keys <- k
			}
		}
	}()
	return keys
}

func (s *screen) loop(ctx context.Context, p *player, keys <-chan key, resized <-chan os.Signal) error {
	last := time.Now()
	for {
		if err := s.draw(p); err != nil {
			return err
		}
		var tick <-chan time.Time
		if d := p.wait(); d > 0 {
			tick = time.After(d)
		}
		k := keyNone
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-resized:
		case <-tick:
		case pressed, ok := <-keys:
			if k = pressed; !ok { // the terminal is gone
				return nil
			}
		}
		now := time.Now()
		p.advance(now.Sub(last))
		last = now
		if k != keyNone && p.press(k) {
			return nil
		}
	}
}

// draw writes a frame of the size that the terminal has now.
func (s *screen) draw(p *player) error {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	var b strings.Builder
	b.WriteString(beginFrame)
	if width != s.width || height != s.height { // the terminal may have moved rows about
		b.WriteString("\x1b[2J")
		s.width, s.height = width, height
	}
	for i, row := range p.frame(width, height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(row)
		if textWidth(row) < width { // in a full row the cursor stands on the last character
			b.WriteString("\x1b[K")
		}
	}
	b.WriteString(endFrame)
	_, err = s.out.WriteString(b.String())
	return err
}
