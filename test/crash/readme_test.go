package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestReadme does the steps of the README under "See it survive" with the real program:
// serve --demo, run in one terminal, tail in a second, an event stream in a third,
// kill -9, serve again.
func TestReadme(t *testing.T) {
	data, addr := t.TempDir(), freeAddress(t)
	w := &world{t: t, data: data}
	w.server.Store(testserver.Start(t, data, "--demo", "--listen", addr))

	run := program(t, "run", "talk for a while", "--agent", "long", "--json", "--data", data)
	first := run.next(t)
	session := sessionOf(t, w)
	tail := program(t, "tail", session, "--json", "--data", data)
	for e := first; e.Type != "TEXT_MESSAGE_CONTENT"; e = run.next(t) {
	}
	ctx := t.Context()
	w.followers.Go(func() { w.followEventSourceOf(ctx, session) })
	var before tapedeck.Event
	for before = tail.next(t); before.Type != "TEXT_MESSAGE_CONTENT"; before = tail.next(t) {
	}

	w.server.Load().Kill()
	w.server.Store(testserver.Start(t, data, "--demo", "--listen", addr))

	next := before.Offset + 1
	for e := tail.next(t); ; e = tail.next(t) {
		if e.Offset != next {
			t.Fatalf("after the restart the tail got offset %d, want %d", e.Offset, next)
		}
		next++
		if e.Type == "RUN_ERROR" {
			if !bytes.Contains(e.Data, []byte(tapedeck.CodeInterrupted)) {
				t.Errorf("the run ended with %s", e.Data)
			}
			break
		}
	}
	w.awaitSeen("EventSource", next)
	if code := run.wait(t); code != 1 {
		t.Errorf("run ended with exit code %d, want 1", code)
	}
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// sessionOf returns the newest session.
func sessionOf(t *testing.T, w *world) string {
	c := w.client()
	defer c.Close()
	page, err := c.Sessions(t.Context(), tapedeck.Filter{Limit: 1})
	if err != nil || len(page.Sessions) != 1 {
		t.Fatalf("%v, %v", page, err)
	}
	return page.Sessions[0].ID
}

// A terminal is a running command that prints events.
type terminal struct {
	cmd    *exec.Cmd
	events chan tapedeck.Event
	stderr bytes.Buffer
}

func program(t *testing.T, args ...string) *terminal {
	p := &terminal{cmd: exec.Command(testserver.Binary(t), args...), events: make(chan tapedeck.Event, 10_000)}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Signal(os.Kill) })
	go func() {
		defer close(p.events)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e tapedeck.Event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				p.events <- e
			}
		}
	}()
	return p
}

func (p *terminal) next(t *testing.T) tapedeck.Event {
	t.Helper()
	select {
	case e, ok := <-p.events:
		if !ok {
			t.Fatalf("%v ended", p.cmd.Args)
		}
		return e
	case <-time.After(2 * time.Minute):
		t.Fatalf("%v stopped printing", p.cmd.Args)
	}
	panic("not reached")
}

func (p *terminal) wait(t *testing.T) int {
	t.Helper()
	for range p.events {
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}
