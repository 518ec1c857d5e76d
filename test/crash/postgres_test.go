package crash

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// output runs a command and returns what it prints, and whether it succeeded.
func output(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	out, err := exec.Command(testserver.Binary(t), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err == nil
}

// says checks that a command fails, or succeeds, and that it prints some texts.
func says(t *testing.T, want bool, args []string, parts ...string) {
	t.Helper()
	out, ok := output(t, args...)
	if ok != want {
		t.Errorf("%v: success is %t\n%s", args, ok, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("%v: the output has no %q\n%s", args, part, out)
		}
	}
}

// TestPostgres kills a server with its sessions in PostgreSQL while many clients append,
// and starts another one with a data folder of its own. Everything that was acknowledged
// is there, once.
func TestPostgres(t *testing.T) {
	c := pgtest.New(t, "fsync=on", "full_page_writes=on")
	db, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	place := []string{"--postgres", c.URL(db), "--postgres-lease", "1s"}
	data := t.TempDir() + "/data"
	s := testserver.Start(t, data, place...)
	const writers = 8
	var acked [writers]int64
	for round := range 3 {
		api := clientOf(t, s.URL)
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() { acked[i] = appendUntil(t, s, api, i, acked[i]) })
		}
		wg.Wait()
		s.Kill() // one of the writers has done so; this waits for the end
		if want := int64(50 * (round + 1)); acked[0] < want {
			t.Fatalf("in round %d, %d appends of the first writer were acknowledged; the test proves nothing", round, acked[0])
		}
		if round == 1 {
			data = t.TempDir() + "/other" // another machine
		}
		s = testserver.Start(t, data, place...)
		for i := range writers {
			head, err := clientOf(t, s.URL).Session(t.Context(), fmt.Sprint("w", i))
			if err != nil || head.Head < acked[i] || head.Head > acked[i]+1 {
				t.Fatalf("w%d is at %d, acknowledged were %d (%v)", i, head.Head, acked[i], err)
			}
			acked[i] = head.Head
		}
	}
	says(t, true, []string{"verify", "--postgres", c.URL(db)}, "no problems", "8 sessions")
	says(t, true, []string{"ls", "--data", data}, "w0")
	says(t, false, []string{"serve", "--data", t.TempDir() + "/third", "--listen", "127.0.0.1:0", "--postgres", c.URL(db)},
		"another server writes to database", "--standby")
	if code := s.End(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with %d\n%s", code, s.Log())
	}
	says(t, false, []string{"ls", "--data", data}, "are in PostgreSQL", "--postgres")
	says(t, false, []string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, "are in PostgreSQL", "--postgres")
}

func clientOf(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.New(url)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// appendUntil appends until the server is killed, which the first writer does after some
// appends, and returns how many appends were acknowledged.
func appendUntil(t *testing.T, s *testserver.Server, c *client.Client, writer int, acked int64) int64 {
	ctx := context.Background()
	id := fmt.Sprint("w", writer)
	if acked == 0 {
		if _, err := c.Create(ctx, api.NewSession{ID: id}); err != nil {
			t.Error(err)
			return 0
		}
		acked = 1 // session.created
	}
	for i := 0; ; i++ {
		if writer == 0 && i == 50 {
			go s.Kill()
		}
		done, err := c.Append(ctx, id, strings.NewReader(`{"type":"test.note","data":{"value":1}}`), client.AppendOptions{})
		if err != nil {
			return acked
		}
		if done.Next != acked+1 {
			t.Errorf("%s: an append ends at %d, and %d were acknowledged before", id, done.Next, acked)
		}
		acked = done.Next
	}
}

// TestPostgresStandby: a server that waits takes over when the first one is killed, and
// the first one, stopped and continued, ends by itself with a sentence.
func TestPostgresStandby(t *testing.T) {
	c := pgtest.New(t)
	place := []string{"--postgres", c.URL("postgres"), "--postgres-lease", "1s"}
	first := testserver.Start(t, t.TempDir()+"/first", place...)
	if _, err := clientOf(t, first.URL).Create(t.Context(), api.NewSession{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first.PID, syscall.SIGSTOP); err != nil {
		t.Skip("processes cannot be stopped here: ", err)
	}
	second := testserver.Start(t, t.TempDir()+"/second", append(place, "--standby")...)
	if _, err := clientOf(t, second.URL).Session(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if code := first.End(t, syscall.SIGCONT); code == 0 || !strings.Contains(first.Log(), "another server has taken over") {
		t.Errorf("the first server ended with %d\n%s", code, first.Log())
	}
}

// TestMigrate copies the sessions of a server from its folder to PostgreSQL and back, with
// the command. Another server serves them at both places, with the search index.
func TestMigrate(t *testing.T) {
	c := pgtest.New(t)
	data, url := t.TempDir()+"/data", c.URL("postgres")
	s := testserver.Start(t, data, "--demo")
	const found = "hello"
	wait := func(s *testserver.Server, id string) {
		t.Helper()
		if _, err := clientOf(t, s.URL).Session(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	wait(s, "demo_hello")
	there := []string{"migrate", "--from", "sqlite:" + data, "--to", url}
	says(t, false, there, "is in use by process")
	if code := s.Stop(t); code != 0 {
		t.Fatalf("the server ended with %d\n%s", code, s.Log())
	}
	before, _ := output(t, "export", "demo_hello", "--data", data)
	says(t, true, there, "copied from", "and compared", "is unchanged")
	says(t, true, []string{"verify", "--postgres", url}, "no problems")
	says(t, false, there, "has sessions or other data already")
	says(t, false, []string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--postgres", url}, "has sessions of its own")

	other := t.TempDir() + "/other"
	s = testserver.Start(t, other, "--postgres", url)
	wait(s, "demo_hello")
	if after, _ := output(t, "export", "demo_hello", "--data", other); after != before {
		t.Errorf("the export differs:\n%s\n%s", before, after)
	}
	says(t, true, []string{"search", found, "--data", other}, "demo_hello")
	says(t, false, []string{"migrate", "--from", url, "--to", "sqlite:" + t.TempDir()}, "another server writes to")
	if code := s.Stop(t); code != 0 {
		t.Fatalf("the server ended with %d\n%s", code, s.Log())
	}
	says(t, false, []string{"migrate", "--from", url, "--to", "sqlite:" + data}, "has sessions or other data already")
	// The folder of the server has its keys, and a note that its sessions are elsewhere.
	says(t, true, []string{"migrate", "--from", url, "--to", "sqlite:" + other, "--json"}, `"step":"compare"`, `"step":"done"`)
	s = testserver.Start(t, other)
	wait(s, "demo_hello")
	if after, _ := output(t, "export", "demo_hello", "--data", other); after != before {
		t.Errorf("the export differs:\n%s\n%s", before, after)
	}
	says(t, true, []string{"search", found, "--data", other}, "demo_hello")
}
