package postgres_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// TestOutage: while the database is down, calls fail as unavailable. When it is back, the
// store works again by itself, and everything that it acknowledged is there.
func TestOutage(t *testing.T) {
	c := pgtest.New(t, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
	db, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{URL: c.URL(db)})
	create(t, s, "a")
	var want []string
	for round := range 3 {
		for i := range 20 {
			want = append(want, fmt.Sprint(round, ".", i))
			add(t, s, "a", want[len(want)-1])
		}
		c.Kill()
		for range 3 {
			_, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: say("lost")})
			isError(t, err, tapedeck.Unavailable, "PostgreSQL")
			_, err = s.Read(t.Context(), "a", tapedeck.Range{})
			isError(t, err, tapedeck.Unavailable, "PostgreSQL cannot be reached")
			if err := s.Writable(t.Context()); tapedeck.KindOf(err) != tapedeck.Unavailable {
				t.Errorf("the store says that it can write: %v", err)
			}
		}
		if err := c.Restart(); err != nil {
			t.Fatal(err)
		}
		got := texts(t, s, "a")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if err := s.Writable(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestClosedConnections: a restart of the database that no call meets is not noticed by
// the next one.
func TestClosedConnections(t *testing.T) {
	c := pgtest.New(t)
	s := open(t, postgres.Options{URL: c.URL("postgres")})
	create(t, s, "a")
	add(t, s, "a", "one")
	texts(t, s, "a")
	c.Kill()
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
	add(t, s, "a", "two")
	if got := texts(t, s, "a"); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

// TestLostAnswer cuts the connection of the writer during a commit: before the request
// reaches the database, or after it was committed and before the answer arrives. Either
// way the append is there once, observers are notified of it once, and it succeeds.
func TestLostAnswer(t *testing.T) {
	for _, when := range []cut{cutRequest, cutAnswer} {
		p := newProxy(t, pgtest.Shared(t).Folder())
		s := open(t, postgres.Options{URL: with(place(t), "host", p.folder)})
		var seen []string
		s.Observe(tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
			for _, c := range commits {
				for _, r := range c.Records {
					seen = append(seen, fmt.Sprint(r.Offset))
				}
			}
		}})
		create(t, s, "a")
		add(t, s, "a", "zero")
		for i := range 3 {
			p.arm(when)
			done := add(t, s, "a", fmt.Sprint(i))
			if done.First != int64(i+1) || !p.happened() {
				t.Errorf("%v: it is at offset %d, cut: %t", when, done.First, p.happened())
			}
		}
		if got := texts(t, s, "a"); fmt.Sprint(got) != "[zero 0 1 2]" {
			t.Errorf("%v: got %v", when, got)
		}
		if fmt.Sprint(seen) != "[0 1 2 3]" {
			t.Errorf("%v: observers saw %v", when, seen)
		}
	}
}

// TestUncertain: the answer of a commit is lost and the database cannot be reached
// afterwards. The caller learns that it is not certain. When the database is back, the
// store finds out, and observers are notified before the next append.
func TestUncertain(t *testing.T) {
	p := newProxy(t, pgtest.Shared(t).Folder())
	s := open(t, postgres.Options{URL: with(place(t), "host", p.folder), Lease: time.Minute})
	var seen []string
	s.Observe(tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
		for _, c := range commits {
			for _, r := range c.Records {
				seen = append(seen, fmt.Sprint(r.Offset))
			}
		}
	}})
	create(t, s, "a")
	by := func(seq int64) tapedeck.Append {
		return tapedeck.Append{Session: "a", Events: say(fmt.Sprint(seq)), Producer: &tapedeck.Producer{ID: "w", Seq: seq}}
	}
	if _, err := s.Append(t.Context(), by(0)); err != nil {
		t.Fatal(err)
	}
	p.arm(cutAnswer)
	p.refuse(true)
	for range 3 {
		_, err := s.Append(t.Context(), by(1))
		if tapedeck.KindOf(err) != tapedeck.Unavailable {
			t.Errorf("got %v", err)
		}
	}
	p.refuse(false)
	done, err := s.Append(t.Context(), by(1))
	if err != nil || !done.Duplicate || done.First != 1 {
		t.Errorf("the repeated append gives %+v, %v", done, err)
	}
	if fmt.Sprint(seen) != "[0 1]" {
		t.Errorf("observers saw %v", seen)
	}
}

// TestSilentDatabase: a database that is stopped keeps its connections open and says nothing.
// The store says soon that it cannot write, and an append does not wait for each of its
// statements. Afterwards it works again by itself.
func TestSilentDatabase(t *testing.T) {
	p := newProxy(t, pgtest.Shared(t).Folder())
	s := open(t, postgres.Options{URL: with(place(t), "host", p.folder), StatementTimeout: 5 * time.Second})
	create(t, s, "a")
	add(t, s, "a", "one")
	if err := s.Writable(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume := p.silence()
	defer resume()
	if err := s.Writable(t.Context()); tapedeck.KindOf(err) != tapedeck.Unavailable || !strings.Contains(err.Error(), "PostgreSQL does not answer") {
		t.Errorf("the store says that it can write: %v", err)
	}
	began := time.Now()
	_, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: say("lost")})
	isError(t, err, tapedeck.Unavailable, "PostgreSQL")
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("the append has waited %s for statements of 5 s", took)
	}
	resume()
	for s.Writable(t.Context()) != nil {
		if t.Context().Err() != nil {
			t.Fatal("it does not come back")
		}
	}
	add(t, s, "a", "two")
	if got := texts(t, s, "a"); got[0] != "one" || got[len(got)-1] != "two" || len(got) > 3 { // the append that failed may be stored
		t.Errorf("got %v", got)
	}
}

// A cut says what a proxy does to the next commit.
type cut int

const (
	cutNothing cut = iota
	cutRequest     // close the connection instead of passing the request on
	cutAnswer      // close the connection instead of passing the answer on
)

// A proxy is between a store and the database. It finds the commits of the writer, and
// cuts its connection.
type proxy struct {
	folder, server string

	mu      sync.Mutex
	next    cut
	done    bool
	refused bool
	silent  chan struct{} // closed when it passes on again what comes; nil while it does
}

func newProxy(t testing.TB, server string) *proxy {
	t.Helper()
	folder, err := os.MkdirTemp("", "pgproxy") // short, for the path of the socket
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{folder: folder, server: server}
	l, err := net.Listen("unix", filepath.Join(folder, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); os.RemoveAll(folder) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) arm(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.done = c, false
}

func (p *proxy) happened() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

func (p *proxy) refuse(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = yes
}

// silence keeps all connections open, and passes nothing on until resume is called.
func (p *proxy) silence() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = make(chan struct{})
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.silent)
		p.silent = nil
	})
}

// awaitSound waits while the proxy is silent.
func (p *proxy) awaitSound() {
	p.mu.Lock()
	silent := p.silent
	p.mu.Unlock()
	if silent != nil {
		<-silent
	}
}

func (p *proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// take reports whether the armed cut is c, and disarms it.
func (p *proxy) take(c cut) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != c {
		return false
	}
	p.next, p.done = cutNothing, true
	return true
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	if p.refuses() {
		return
	}
	server, err := net.Dial("unix", filepath.Join(p.server, ".s.PGSQL.5432"))
	if err != nil {
		return
	}
	defer server.Close()
	first := make([]byte, 4096)
	n, err := client.Read(first)
	p.awaitSound()
	if err != nil {
		return
	}
	writer := bytes.Contains(first[:n], []byte("tapedeck writer"))
	if _, err := server.Write(first[:n]); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	pass := func(to, from net.Conn, at cut) {
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			p.awaitSound()
			if n > 0 && writer && p.take(at) {
				break
			}
			if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
				break
			}
		}
		ended <- struct{}{}
	}
	go pass(server, client, cutRequest)
	go pass(client, server, cutAnswer)
	<-ended
}
