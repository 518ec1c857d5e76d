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

// A screen is a terminal that shows the frames of a player and reads keys.
type screen struct {
	in, out       *os.File
	width, height int
}

// These are escape sequences. The alternate screen keeps the text that was in the
// terminal. Line wrap is off, so that a character that is wider than expected is cut
// off and does not shift all rows. A synchronized update prevents partial frames.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	beginFrame  = "\x1b[?2026h\x1b[H"
	endFrame    = "\x1b[?2026l"
)

// Options are the options of [Play].
type Options struct {
	Speed    float64 // how many times faster, 0.5 to 16
	SkipIdle bool    // play gaps over 2 s in 0.3 s
	From     int64   // the offset to start at
}

// Play plays a recording in a terminal until the user quits or ctx is done. It always
// restores the terminal.
func Play(ctx context.Context, in, out *os.File, r *Recording, o Options) error {
	r.complete()
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
	defer func() { // after a panic, too
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

// keys reads keys until the terminal is closed. A read from a terminal cannot be
// interrupted, so the goroutine may last until the program ends.
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
			if k = pressed; !ok { // the terminal was closed
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

// draw writes a frame in the current size of the terminal.
func (s *screen) draw(p *player) error {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	var b strings.Builder
	b.WriteString(beginFrame)
	if width != s.width || height != s.height { // the terminal may have moved rows
		b.WriteString("\x1b[2J")
		s.width, s.height = width, height
	}
	for i, row := range p.frame(width, height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(row)
		if textWidth(row) < width { // in a full row the cursor is on the last character, which this would erase
			b.WriteString("\x1b[K")
		}
	}
	b.WriteString(endFrame)
	_, err = s.out.WriteString(b.String())
	return err
}
