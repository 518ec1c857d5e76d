package terminal

import "testing"

// Each line has its own style, so that it can be shown without the lines before it.
func TestPaintLines(t *testing.T) {
	p := Pen{Color: true}
	if got := p.Paint(Bold, "a\nb"); got != "\x1b[1ma\x1b[0m\n\x1b[1mb\x1b[0m" {
		t.Errorf("%q", got)
	}
}
