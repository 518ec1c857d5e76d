package crash

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestPostgresOutage stops PostgreSQL under a server, twice. Meanwhile the
// server says what it cannot do and keeps its streams. Afterwards it works by itself, with
// everything that it acknowledged, and a follower gets each event once.
func TestPostgresOutage(t *testing.T) {
	pg := pgtest.New(t, "fsync=on", "full_page_writes=on")
	s := testserver.Start(t, t.TempDir()+"/data", "--postgres", pg.URL("postgres"), "--postgres-lease", "2s")
	c := clientOf(t, s.URL)
	ctx := t.Context()
	if _, err := c.Create(ctx, api.NewSession{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan tapedeck.Record, 100)
	following, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(seen)
		for r, err := range c.Follow(following, "a", client.FollowOptions{}) {
			if err != nil {
				return
			}
			seen <- r
		}
	}()
	next := int64(0)
	follow := func(head int64) {
		t.Helper()
		for ; next < head; next++ {
			if r, ok := <-seen; !ok || r.Offset != next {
				t.Fatalf("the follower has offset %d, %t; want %d", r.Offset, ok, next)
			}
		}
	}
	say := func() (tapedeck.Appended, error) {
		return c.Append(ctx, "a", strings.NewReader(`{"type":"message.added","data":{"message":{"id":"m`+fmt.Sprint(time.Now().UnixNano())+`","role":"user","content":"x"}}}`), client.AppendOptions{})
	}
	for range 2 {
		done, err := say()
		if err != nil {
			t.Fatal(err)
		}
		follow(done.Head)
		pg.Kill()
		if _, err := say(); tapedeck.KindOf(err) != tapedeck.Unavailable {
			t.Errorf("an append gives %v", err)
		}
		if _, err := c.Sessions(ctx, tapedeck.Filter{}); tapedeck.KindOf(err) != tapedeck.Unavailable {
			t.Errorf("a list gives %v", err)
		}
		if code, text := readyz(t, s.URL); code != http.StatusServiceUnavailable {
			t.Errorf("readyz is %d %s", code, text)
		}
		says(t, false, []string{"ls", "--url", s.URL}, "PostgreSQL cannot be reached", "connects again by itself")
		if err := pg.Restart(); err != nil {
			t.Fatal(err)
		}
		if code, text := readyz(t, s.URL); code != http.StatusOK {
			t.Errorf("readyz is %d %s", code, text)
		}
		if done, err = say(); err != nil || done.First != next {
			t.Fatalf("an append afterwards is at %d (%v), want %d", done.First, err, next)
		}
		follow(done.Head)
	}
	stop()
	if code := s.End(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with %d\n%s", code, s.Log())
	}
	says(t, true, []string{"verify", "--postgres", pg.URL("postgres")}, "no problems")
}

// TestPostgresRefused: whatever is wrong with the database, the server does not start, and
// says what to do without the password.
func TestPostgresRefused(t *testing.T) {
	pg := pgtest.New(t)
	if err := pg.Exec("postgres", `CREATE ROLE secured LOGIN PASSWORD 'right'`, `CREATE ROLE guest LOGIN`, `CREATE SCHEMA shop`, `CREATE TABLE shop.orders (id int)`); err != nil {
		t.Fatal(err)
	}
	url := pg.URL("postgres")
	for what, test := range map[string][]string{
		"a wrong URL":         {"postgres://a:hunter2@[::bad", "cannot be read", "write it as postgres://"},
		"nobody listens":      {"postgres://a:hunter2@127.0.0.1:1/db", "does not answer", "look whether it runs"},
		"a wrong password":    {strings.Replace(pg.URLFor("secured", "postgres"), "secured@", "secured:hunter2@", 1), "refuses the password", "PGPASSWORD"},
		"no right to create":  {pg.URLFor("guest", "postgres"), "may not use or create the schema", "CREATE SCHEMA tapedeck AUTHORIZATION"},
		"no such database":    {pg.URL("nowhere"), "there is no database", "createdb nowhere"},
		"a read-only replica": {url + "&default_transaction_read_only=on", "takes no writes", "address of the primary"},
		"tables of others":    {url + "&search_path=shop", "tables that are not Tapedeck's", "search_path"},
	} {
		t.Log(what)
		says(t, false, []string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--postgres", test[0]}, test[1:]...)
		if out, _ := output(t, "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--postgres", test[0]); strings.Contains(out, "hunter2") {
			t.Errorf("the output has the password:\n%s", out)
		}
	}
	data := t.TempDir()
	says(t, false, []string{"migrate", "--from", "sqlite:" + data, "--to", url}, "there are no sessions in")
	testserver.Start(t, data).Stop(t)
	says(t, false, []string{"migrate", "--from", "sqlite:" + data, "--to", url + "&default_transaction_read_only=on"}, "takes no writes", "address of the primary")
}
