package procgroup

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck/internal/bytesize"
)

// Limits bound a program together with all processes below it. When one is exceeded, all
// of them are killed, and [Process.Exit] says which limit it was. 0 is no limit. Only
// Linux has those of memory and processes.
type Limits struct {
	Time      time.Duration // since its release
	Output    int64         // bytes on its standard output and error
	Memory    int64         // bytes in memory that belong to it alone or are shared memory
	Processes int           // processes at one moment
}

// A breach is the text that says which limit was exceeded; empty if none was.
type breach struct{ text atomic.Pointer[string] }

func (b *breach) set(text string) bool { return b.text.CompareAndSwap(nil, &text) }

func (b *breach) String() string {
	if t := b.text.Load(); t != nil {
		return *t
	}
	return ""
}

// exceed kills the program, because it exceeded a limit.
func (p *Process) exceed(text string) {
	if p.breach.set(text) {
		p.kill()
	}
}

// limitTime kills the program after its time.
func (p *Process) limitTime() {
	if p.limits.Time <= 0 {
		return
	}
	t := time.NewTimer(p.limits.Time)
	defer t.Stop()
	select {
	case <-t.C:
		p.exceed("killed: it ran longer than " + p.limits.Time.String())
	case <-p.gone:
	}
}

// A gauge counts what is read from a program, and kills it at the limit.
type gauge struct {
	io.Reader
	p *Process
}

// Read implements io.Reader.
func (g gauge) Read(b []byte) (int, error) {
	n, err := g.Reader.Read(b)
	if limit := g.p.limits.Output; limit > 0 && g.p.written.Add(int64(n)) > limit {
		g.p.exceed("killed: its output is longer than " + bytesize.Text(limit))
	}
	return n, err
}
