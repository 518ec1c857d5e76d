package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

func say(text string) []tapedeck.Event {
	return []tapedeck.Event{{Type: "TEXT_MESSAGE_CONTENT", Data: []byte(fmt.Sprintf(`{"messageId":"m","delta":%q}`, text))}}
}

func add(t testing.TB, s tapedeck.Store, id, text string) tapedeck.Appended {
	t.Helper()
	done, err := s.Append(context.Background(), tapedeck.Append{Session: id, Events: say(text)})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func create(t testing.TB, s tapedeck.Store, id string) {
	t.Helper()
	if _, err := s.Create(t.Context(), tapedeck.Spec{ID: id}); err != nil {
		t.Fatal(err)
	}
}

// texts returns the events of a session, which must have no gap.
func texts(t testing.TB, s tapedeck.Store, id string) (out []string) {
	t.Helper()
	for e, err := range tapedeck.Events(context.Background(), s, id, 0) {
		if err != nil || e.Offset != int64(len(out)) {
			t.Fatalf("offset %d where %d belongs: %v", e.Offset, len(out), err)
		}
		_, text, _ := strings.Cut(string(e.Data), `"delta":"`)
		out = append(out, strings.TrimSuffix(text, `"}`))
	}
	return out
}

// isError checks the kind and a part of the sentence of an error, and that it has a hint.
func isError(t testing.TB, err error, k tapedeck.Kind, part string) {
	t.Helper()
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != k || !strings.Contains(e.Message, part) || e.Hint == "" {
		t.Errorf("got %v (%+v), want %s with %q and a hint", err, e, k, part)
	}
}

// TestSecondServer: a second server is refused while the first one lives, also if the
// first one is silent for a while, and can open the database when the first one has closed.
func TestSecondServer(t *testing.T) {
	o := postgres.Options{URL: place(t), Lease: 400 * time.Millisecond}
	first := open(t, o)
	create(t, first, "a")
	_, err := postgres.Open(t.Context(), o)
	isError(t, err, tapedeck.Conflict, "another server writes to")
	add(t, first, "a", "one")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, o)
	add(t, second, "a", "two")
	if got := strings.Join(texts(t, second, "a"), " "); got != "one two" {
		t.Errorf("got %s", got)
	}
}

// TestStandby: a server that waits takes over when the first one closes, and its views of
// sessions are those of the database.
func TestStandby(t *testing.T) {
	o := postgres.Options{URL: place(t), Lease: time.Second}
	first := open(t, o)
	create(t, first, "a")
	o.Standby = true
	opened := make(chan *postgres.Store)
	go func() {
		s, err := postgres.Open(context.Background(), o)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	for i := range 5 {
		add(t, first, "a", fmt.Sprint(i))
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := <-opened
	defer second.Close()
	add(t, second, "a", "5")
	if got := strings.Join(texts(t, second, "a"), ""); got != "012345" {
		t.Errorf("got %s", got)
	}
}

// TestPausedOwner: an owner is held between its decision and its commit for longer than
// its lease. Another server takes over and writes at the same offset. The old owner must
// not write, also if the rows at its offset have been removed meanwhile, so that no key
// stops it, and also if the commit has no offset.
func TestPausedOwner(t *testing.T) {
	for name, write := range map[string]func(s *postgres.Store) error{
		"an append": func(s *postgres.Store) error {
			_, err := s.Append(context.Background(), tapedeck.Append{Session: "a", Events: say("from the old owner")})
			return err
		},
		"a subscription": func(s *postgres.Store) error {
			return s.Subscriptions().Put(context.Background(), "old", []byte("{}"), nil)
		},
	} {
		for _, erased := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, erased), func(t *testing.T) { testPausedOwner(t, write, erased) })
		}
	}
}

func testPausedOwner(t *testing.T, write func(s *postgres.Store) error, recreate bool) {
	o := postgres.Options{URL: place(t), Lease: 300 * time.Millisecond}
	entered, leave := make(chan struct{}), make(chan struct{})
	var hold sync.Once
	var armed atomic.Bool
	lost := make(chan error, 1)
	paused := o
	paused.OnLost = func(err error) { lost <- err }
	paused.Commit = func(commit func() error) error {
		if armed.Load() {
			hold.Do(func() { close(entered); <-leave })
		}
		return commit()
	}
	first := open(t, paused)
	create(t, first, "a")
	add(t, first, "a", "one")
	armed.Store(true)
	failed := make(chan error, 1)
	go func() { failed <- write(first) }()
	<-entered
	first.StopRenewing() // as if the whole process were stopped
	forgetName(t, o.URL)
	second := open(t, o)
	add(t, second, "a", "two")
	want := "one two three"
	if recreate {
		if err := second.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		create(t, second, "a")
		want = "three"
	}
	close(leave)
	if err := <-failed; err == nil {
		t.Fatal("the old owner has written")
	} else {
		isError(t, err, tapedeck.Unavailable, "another server has taken over")
	}
	isError(t, <-lost, tapedeck.Unavailable, "another server has taken over")
	_, err := first.Head(t.Context(), "a")
	isError(t, err, tapedeck.Unavailable, "another server has taken over")
	isError(t, write(first), tapedeck.Unavailable, "another server has taken over")
	add(t, second, "a", "three")
	if got := strings.Join(texts(t, second, "a"), " "); got != want {
		t.Errorf("got %s", got)
	}
	if all, err := second.Subscriptions().All(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("the old owner has written %v, %v", all, err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	report, err := postgres.Verify(t.Context(), o, nil)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// forgetName makes a server that takes over not find the connections of the old owner. It
// would close them, and the fence would have nothing to do.
func forgetName(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err == nil {
		err = pgtest.Shared(t).Exec("postgres", "SET search_path = "+u.Query().Get("search_path"), "UPDATE owner SET name = 'somebody'")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStaleReads: an owner whose lease has run out does not answer from its memory.
func TestStaleReads(t *testing.T) {
	o := postgres.Options{URL: place(t), Lease: 300 * time.Millisecond}
	first := open(t, o)
	create(t, first, "a")
	first.StopRenewing()
	second := open(t, o)
	add(t, second, "a", "one")
	if s, err := first.Head(t.Context(), "a"); err == nil && s.Head != 1 {
		t.Errorf("the old owner says that the head is %d", s.Head)
	}
}

// childVariable tells the test binary to be a server that appends until it is ended.
const childVariable = "TAPEDECK_TEST_POSTGRES_CHILD"

// TestChild is the process of TestStoppedProcess.
func TestChild(t *testing.T) {
	url := os.Getenv(childVariable)
	if url == "" {
		t.Skip("it is a part of TestStoppedProcess")
	}
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s, "a")
	for i := 0; ; i++ {
		if _, err := s.Append(context.Background(), tapedeck.Append{Session: "a", Events: say(fmt.Sprint("child ", i))}); err != nil {
			fmt.Println("refused:", err)
			return
		}
		fmt.Println("acknowledged", i)
	}
}

// TestStoppedProcess stops a real server with SIGSTOP while it appends, takes over, and
// continues it: it must lose nothing that it acknowledged, and write nothing more.
func TestStoppedProcess(t *testing.T) {
	url := place(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"="+url)
	out := newLines()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	out.wait("acknowledged 20")
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Skip("processes cannot be stopped here: ", err)
	}
	s := open(t, postgres.Options{URL: url, Lease: time.Second})
	before := texts(t, s, "a")
	add(t, s, "a", "taken over")
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	out.wait("refused: ")
	got := texts(t, s, "a")
	if len(got) != len(before)+1 || got[len(before)] != "taken over" {
		t.Errorf("after %d events there are %d", len(before), len(got))
	}
	for i, text := range before {
		if text != fmt.Sprint("child ", i) {
			t.Errorf("offset %d has %q", i, text)
		}
	}
	if acked := out.count("acknowledged "); acked > len(before) {
		t.Errorf("%d events were acknowledged and %d are there", acked, len(before))
	}
}

// lines gathers the output of a process.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// wait waits until the output has s. The time-out of the test ends it.
func (l *lines) wait(s string) {
	for l.count(s) == 0 {
		<-l.more
	}
}
