package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/frame"
)

// A log remembers what it was asked to append.
type log struct {
	mu      sync.Mutex
	calls   []string      // the number of parts of each append that was stored
	hold    chan struct{} // an append waits for it; nil for no wait
	refuse  string        // events of this type are refused
	failing error
	heads   map[string]int64
	last    int64 // the newest sequence number of the only producer
}

func (l *log) append(_ context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	if l.hold != nil {
		<-l.hold
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.failing != nil:
		return tapedeck.Appended{}, l.failing
	case slices.ContainsFunc(a.Events, func(e tapedeck.Event) bool { return e.Type == l.refuse }):
		return tapedeck.Appended{}, tapedeck.Errorf(tapedeck.Conflict, "no")
	case a.Producer != nil && a.Producer.Seq <= l.last:
		return tapedeck.Appended{First: -1, Next: -1, Head: l.heads[a.Session], Duplicate: true, Seq: l.last}, nil
	}
	first := l.heads[a.Session]
	l.heads[a.Session] += int64(len(a.Events))
	l.calls = append(l.calls, fmt.Sprint(a.Session, max(1, len(a.Parts))))
	if a.Producer != nil {
		l.last = a.Producer.Seq + int64(max(1, len(a.Parts))) - 1
	}
	return tapedeck.Appended{First: first, Next: l.heads[a.Session], Head: l.heads[a.Session], Parts: a.Parts, Seq: l.last}, nil
}

// run puts requests, one a message, and returns the answers.
func run(t *testing.T, l *log, list ...frame.Request) (answers []string) {
	t.Helper()
	held := 0
	synctest.Test(t, func(t *testing.T) {
		l.heads, l.hold = make(map[string]int64), make(chan struct{})
		p := Start(t.Context(), Options{
			Append: l.append, Shown: func(err error) *tapedeck.Error { return tapedeck.Errorf(tapedeck.KindOf(err), "%v", err) },
			Send: func(b []byte) error {
				for line := range frame.Lines(b) {
					answers = append(answers, string(line))
				}
				return nil
			},
			Release: func(n int) { held -= n },
		})
		for i, r := range list {
			r.Seq = int64(i)
			held += 10
			p.Put([]frame.Request{r}, 10)
			if i == 0 {
				synctest.Wait() // the first round is under way
			}
		}
		close(l.hold)
		p.Close()
	})
	if held != 0 {
		t.Errorf("%d bytes were not released", held)
	}
	if len(answers) != len(list) {
		t.Fatalf("%d answers: %q", len(answers), answers)
	}
	for i, a := range answers {
		if !strings.Contains(a, fmt.Sprintf(`"seq":%d,`, i)) {
			t.Errorf("answer %d is %s", i, a)
		}
	}
	return answers
}

func events(session string, types ...string) frame.Request {
	r := frame.Request{Type: frame.TypeAppend, Session: session}
	for _, typ := range types {
		r.Events = append(r.Events, tapedeck.Event{Type: typ})
	}
	return r
}

func by(seq int64, r frame.Request) frame.Request {
	r.Producer = &tapedeck.Producer{ID: "p", Seq: seq}
	return r
}

// TestJoined: what arrives during a commit costs one commit for each session.
func TestJoined(t *testing.T) {
	l := &log{last: -1}
	got := run(t, l, events("a", "x"), events("a", "x", "x"), events("b", "x"), events("a", "x"), events("b", "x"))
	slices.Sort(l.calls)
	if want := []string{"a1", "a2", "b2"}; !slices.Equal(l.calls, want) {
		t.Errorf("the appends are %q, want %q", l.calls, want)
	}
	if !strings.Contains(got[3], `"first":3,"last":3,"head":4`) || !strings.Contains(got[4], `"first":1,"last":1`) {
		t.Errorf("got %q", got)
	}
}

// TestNotJoined: an expected offset and another producer begin an append of their own.
func TestNotJoined(t *testing.T) {
	l, zero := &log{last: -1}, int64(0)
	expecting := events("a", "x")
	expecting.Expect = &zero
	run(t, l, events("b", "x"), events("a", "x"), expecting, events("a", "x"), by(0, events("a", "x")), by(1, events("a", "x")), by(3, events("a", "x")))
	if want := []string{"b1", "a1", "a2", "a2", "a1"}; !slices.Equal(l.calls, want) {
		t.Errorf("the appends are %q, want %q", l.calls, want)
	}
}

// TestOneRefused: of appends that are joined, only the wrong one is refused.
func TestOneRefused(t *testing.T) {
	l := &log{last: -1, refuse: "bad"}
	list := []frame.Request{events("b", "x")}
	for i := range 9 {
		list = append(list, events("a", map[bool]string{true: "bad", false: "x"}[i == 5]))
	}
	for i, a := range run(t, l, list...) {
		if strings.Contains(a, `"error"`) != (i == 6) {
			t.Errorf("answer %d is %s", i, a)
		}
	}
	if l.heads["a"] != 8 {
		t.Errorf("%d events, want 8", l.heads["a"])
	}
}

// TestPartlyRepeated: a producer repeats what was stored, and continues.
func TestPartlyRepeated(t *testing.T) {
	l := &log{last: 1}
	got := run(t, l, events("b", "x"), by(0, events("a", "x")), by(1, events("a", "x")), by(2, events("a", "x")), by(3, events("a", "x")))
	for i, a := range got[1:] {
		if strings.Contains(a, `"duplicate"`) != (i < 2) {
			t.Errorf("append %d: %s", i, a)
		}
	}
	if l.heads["a"] != 2 {
		t.Errorf("%d events, want 2", l.heads["a"])
	}
}

// TestUnavailable: a log that cannot write is not asked again for each append.
func TestUnavailable(t *testing.T) {
	l := &log{last: -1, failing: tapedeck.Errorf(tapedeck.Unavailable, "the disk is full")}
	list := make([]frame.Request, 50)
	for i := range list {
		list[i] = events("a", "x")
	}
	asked := 0
	failing := l.append
	count := func(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
		asked++
		return failing(ctx, a)
	}
	var answers int
	p := Start(t.Context(), Options{
		Append: count, Shown: func(err error) *tapedeck.Error { return tapedeck.Errorf(tapedeck.KindOf(err), "%v", err) },
		Send:    func(b []byte) error { answers += strings.Count(string(b), `"kind":"unavailable"`); return nil },
		Release: func(int) {},
	})
	for i := range list {
		list[i].Seq = int64(i)
	}
	p.Put(list, 1)
	p.Close()
	if answers != 50 || asked != 1 {
		t.Errorf("%d appends failed, and the log was asked %d times", answers, asked)
	}
}
