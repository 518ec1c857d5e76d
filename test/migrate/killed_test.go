package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/view/viewtest"
)

// childVar makes the test binary a program that copies from one site to another and kills
// itself: its value is a number for the killer and the two sites, with spaces between.
const childVar = "TAPEDECK_MIGRATE_TEST_CHILD"

func (s site) String() string { return s.folder + "|" + s.url }

func siteOf(text string) site {
	folder, url, _ := strings.Cut(text, "|")
	return site{folder, url}
}

func child() {
	lease = 2 * time.Second
	args := strings.Split(os.Getenv(childVar), " ")
	moments, err := strconv.Atoi(args[0])
	if err == nil {
		_, err = transfer(context.Background(), siteOf(args[1]), siteOf(args[2]), func(t store.TransferTarget) store.TransferTarget {
			return &killer{TransferTarget: t, left: moments}
		})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// A killer kills its process before or after one of the calls that store something.
type killer struct {
	store.TransferTarget
	left int // such moments that pass before
}

func (k *killer) count() {
	if k.left--; k.left < 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (k *killer) during(call func() error) error {
	k.count()
	defer k.count()
	return call()
}

func (k *killer) Begin(ctx context.Context, tables []store.TransferTable, m store.TransferMark) error {
	return k.during(func() error { return k.TransferTarget.Begin(ctx, tables, m) })
}

func (k *killer) PutRows(ctx context.Context, t store.TransferTable, rows []store.TransferRow, m store.TransferMark) error {
	return k.during(func() error { return k.TransferTarget.PutRows(ctx, t, rows, m) })
}

func (k *killer) PutEvents(ctx context.Context, events []store.TransferEvent, m store.TransferMark) error {
	return k.during(func() error { return k.TransferTarget.PutEvents(ctx, events, m) })
}

func (k *killer) End(ctx context.Context, f store.TransferFacts) error {
	k.count() // after it, nothing is left to do
	return k.TransferTarget.End(ctx, f)
}

// fill creates sessions with wild logs, and enough of them for several commits: many
// sessions, a long one, large events, forks of a deleted session, streams and producers.
func fill(t *testing.T, s tapedeck.Store) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		events := viewtest.Log(uint64(i), viewtest.Varied(uint64(i)))
		id := fmt.Sprint("wild", i)
		_, err := s.Create(ctx, tapedeck.Spec{ID: id})
		must(err)
		for j := range events {
			_, err = s.Append(ctx, tapedeck.Append{Session: id, Events: events[j : j+1], Producer: &tapedeck.Producer{ID: "p\x00é\xff", Seq: int64(j)}})
			must(err)
		}
	}
	_, err := s.Create(ctx, tapedeck.Spec{ID: "long", Origin: "a\x00b\x1a00\xff"})
	must(err)
	for range 5 {
		_, err = s.Append(ctx, tapedeck.Append{Session: "long", Events: said(2000, "word")})
		must(err)
	}
	_, err = s.Append(ctx, tapedeck.Append{Session: "long", Events: said(3, strings.Repeat("large ", 400_000))})
	must(err)
	must(second(s.Create(ctx, tapedeck.Spec{ID: "fork", Parent: "long"})))
	must(second(s.Create(ctx, tapedeck.Spec{ID: "fork_of", Parent: "fork", Events: said(2, "in a fork")})))
	must(s.Delete(ctx, "long"))
	must(second(s.Create(ctx, tapedeck.Spec{ID: "stream/a", Kind: tapedeck.KindStream, ContentType: "text/plain", Chunks: [][]byte{{0, 255}, []byte("x")}})))
	many := make(chan error)
	for i := range 1500 {
		go func() {
			many <- second(s.Create(ctx, tapedeck.Spec{ID: fmt.Sprint("s", i), Events: said(1, "one")}))
		}()
	}
	for range 1500 {
		must(<-many)
	}
	must(second(s.Erase(ctx, tapedeck.Erasure{
		Session: "fork_of", Ranges: []tapedeck.OffsetRange{{From: 10_003, To: 10_004}},
		Events: []tapedeck.Event{payload.NewEvent(payload.SessionRedacted{Offsets: []tapedeck.OffsetRange{{From: 10_003, To: 10_004}}})},
	})))
}

func second[T any](_ T, err error) error { return err }

func said(n int, text string) (out []tapedeck.Event) {
	for range n {
		out = append(out, payload.NewEvent(payload.TextMessageContent{MessageID: "m", Delta: payload.Piece(text)}))
	}
	return out
}

// firstMoments are those of which the mark is stored, so that a server refuses the target.
const firstMoments = 4

// TestKilled kills the copying before and after random commits, as often as it takes. No
// server opens the target meanwhile. In the end the target has everything, and so has a
// folder that is copied back from a database.
func TestKilled(t *testing.T) {
	from := folder(t)
	s := from.open(t, options{})
	fill(t, s)
	want := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		to := from.other(t)
		kills := 0
		for killed(t, from, to, firstMoments+rand.IntN(16)) {
			kills++
			refuses(t, to)
		}
		if kills == 0 {
			t.Error("it was never killed")
		}
		s := to.open(t, options{})
		if d := cmp.Diff(want, dump(t, s)); d != "" {
			t.Fatalf("(-source +target)\n%s", d)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		from = to
	}
}

// killed runs a child that kills itself after some moments, see killer, and reports whether
// it did.
func killed(t *testing.T, from, to site, moments int) bool {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", childVar, moments, from, to))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.ExitCode() == -1:
		return true
	}
	t.Fatalf("%v\n%s", err, out)
	return false
}

// refuses checks that no server opens a site.
func refuses(t *testing.T, s site) {
	t.Helper()
	st, err := s.tryOpen(t.Context(), options{})
	if err == nil {
		_ = st.Close()
		t.Fatal("a server opens what is copied in part")
	}
	if tapedeck.KindOf(err) != tapedeck.Conflict || !strings.Contains(err.Error(), "has only a part of the sessions") {
		t.Fatalf("the error is %v", err)
	}
}

// A readable is what callers can read of a session.
type readable struct {
	Entry   tapedeck.Session
	Records string
}

// dump returns everything that callers can read, by the ids of the sessions.
func dump(t *testing.T, s tapedeck.Store) map[string]readable {
	t.Helper()
	out := map[string]readable{}
	for _, kind := range []tapedeck.SessionKind{tapedeck.KindSession, tapedeck.KindStream, tapedeck.KindView} {
		f := tapedeck.Filter{Kind: kind, Limit: 500}
		for {
			page, err := s.List(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range page.Sessions {
				out[v.ID] = readable{v, string(records(t, s, v.ID))}
			}
			if f.Cursor = page.Next; f.Cursor == "" {
				break
			}
		}
	}
	return out
}

// records returns the bytes of all records of a session, one after the other.
func records(t *testing.T, s tapedeck.Store, id string) []byte {
	t.Helper()
	var b bytes.Buffer
	for at := int64(0); ; {
		page, err := s.Read(t.Context(), id, tapedeck.Range{From: at})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			fmt.Fprintf(&b, "%d %d\n", r.Offset, len(r.Data))
			b.Write(r.Data)
		}
		if at = page.Next; at >= page.Head {
			return b.Bytes()
		}
	}
}
