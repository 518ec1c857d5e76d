package crash

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/internal/testserver"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/shards"
)

// spread are three PostgreSQL with a database each, and the flags for them.
type spread struct {
	clusters []*pgtest.Cluster
	urls     []string
	flags    []string
}

func newSpread(t *testing.T) *spread {
	var s spread
	for range 3 {
		c := pgtest.New(t, "fsync=on", "full_page_writes=on")
		s.clusters, s.urls = append(s.clusters, c), append(s.urls, c.URL("postgres"))
	}
	s.flags = inDatabases(s.urls...)
	return &s
}

func inDatabases(urls ...string) (flags []string) {
	for _, u := range urls {
		flags = append(flags, "--postgres", u)
	}
	return flags
}

// idIn returns an id that belongs to a database of three, another one for each n.
func idIn(database, n int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint("s", i); shards.Home(id, 3) == database {
			if n--; n < 0 {
				return id
			}
		}
	}
}

// say appends a message.
func say(ctx context.Context, c *client.Client, id, text string) error {
	e := `{"type":"message.added","data":{"message":{"id":"` + tapedeck.NewID("m_") + `","role":"user","content":"` + text + `"}}}`
	_, err := c.Append(ctx, id, strings.NewReader(e), client.AppendOptions{})
	return err
}

// TestDatabases spreads sessions over three PostgreSQL, kills one of them, and starts it
// again. What is in the others works meanwhile, and afterwards everything does.
func TestDatabases(t *testing.T) {
	pg, ctx := newSpread(t), t.Context()
	data := t.TempDir() + "/data"
	s := testserver.Start(t, data, append(pg.flags, "--postgres-lease", "2s")...)
	c := clientOf(t, s.URL)
	for i := range 3 {
		if _, err := c.Create(ctx, api.NewSession{ID: idIn(i, 0)}); err != nil {
			t.Fatal(err)
		}
		if err := say(ctx, c, idIn(i, 0), "hello"); err != nil {
			t.Fatal(err)
		}
	}
	fork := idIn(2, 1) // lies with its parent in the first database
	if _, err := c.Fork(ctx, api.Fork{Parent: idIn(0, 0), ID: fork}); err != nil {
		t.Fatal(err)
	}
	pg.isWhole(t, c, 4)

	pg.clusters[1].Kill()
	for i, want := range []tapedeck.Kind{"", tapedeck.Unavailable, ""} {
		if err := say(ctx, c, idIn(i, 0), "meanwhile"); tapedeck.KindOf(err) != want {
			t.Errorf("an append to database %d gives %v", i+1, err)
		}
	}
	if err := say(ctx, c, fork, "meanwhile"); err != nil {
		t.Errorf("an append to the fork gives %v", err)
	}
	says(t, false, []string{"ls", "--url", s.URL}, "database 2 of 3 does not answer, so the list would not have all sessions")
	says(t, false, []string{"search", "hello", "--url", s.URL}, "database 2 of 3 does not answer, so the search would not have all hits")
	if code, text := readyz(t, s.URL); code != http.StatusOK {
		t.Errorf("readyz is %d %s", code, text)
	}
	if err := pg.clusters[1].Restart(); err != nil {
		t.Fatal(err)
	}
	if err := say(ctx, c, idIn(1, 0), "again"); err != nil {
		t.Error(err)
	}
	pg.isWhole(t, c, 4)

	s.Kill()
	s = testserver.Start(t, data, append(pg.flags, "--postgres-lease", "2s")...)
	c = clientOf(t, s.URL)
	if got, err := c.Session(ctx, fork); err != nil || got.Parent != idIn(0, 0) {
		t.Errorf("after a restart the fork is %+v, %v", got, err)
	}
	pg.isWhole(t, c, 4)
	if code := s.End(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with %d\n%s", code, s.Log())
	}
	says(t, true, append([]string{"verify"}, pg.flags...), "no problems", "4 sessions")
	if out, _ := output(t, "doctor", "--data", data); strings.Count(out, `database "postgres" at`) != 3 {
		t.Errorf("doctor does not name the databases:\n%s", out)
	}
	says(t, false, []string{"ls", "--data", data}, "are in PostgreSQL")
}

// isWhole checks that a list and a search have everything.
func (pg *spread) isWhole(t *testing.T, c *client.Client, sessions int) {
	t.Helper()
	page, err := c.Sessions(t.Context(), tapedeck.Filter{})
	if err != nil || len(page.Sessions) != sessions {
		t.Fatalf("the list has %d sessions, %v", len(page.Sessions), err)
	}
	var found []string
	r, err := c.Search(t.Context(), search.Query{Text: "hello"})
	for err == nil && r.Behind > 0 { // the index follows the log
		r, err = c.Search(t.Context(), search.Query{Text: "hello"})
	}
	for _, h := range r.Hits {
		found = append(found, h.Session)
	}
	slices.Sort(found)
	want := []string{idIn(0, 0), idIn(1, 0), idIn(2, 0)}
	slices.Sort(want)
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("the search finds %v, %v; want %v", found, err, want)
	}
}

// TestDatabasesRefused: a wrong list of databases is refused with a sentence, and nothing
// changes.
func TestDatabasesRefused(t *testing.T) {
	pg := newSpread(t)
	urls := pg.urls
	start := func(urls ...string) []string {
		return append([]string{"serve", "--data", t.TempDir() + "/new", "--listen", "127.0.0.1:0"}, inDatabases(urls...)...)
	}
	if err := pg.clusters[0].Exec("postgres", `CREATE DATABASE empty`, `CREATE DATABASE alone`, `CREATE DATABASE foreign1`, `CREATE DATABASE foreign2`); err != nil {
		t.Fatal(err)
	}
	empty, alone := pg.clusters[0].URL("empty"), pg.clusters[0].URL("alone")
	foreign := []string{pg.clusters[0].URL("foreign1"), pg.clusters[0].URL("foreign2")}
	testserver.Start(t, t.TempDir()+"/f", inDatabases(foreign...)...).Stop(t)
	s := testserver.Start(t, t.TempDir()+"/alone", "--postgres", alone)
	if _, err := clientOf(t, s.URL).Create(t.Context(), api.NewSession{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	says(t, false, start(alone, empty), "has sessions of its own, so it cannot become database 1 of 2")
	testserver.Start(t, t.TempDir()+"/data", pg.flags...).Stop(t)
	for what, test := range map[string]struct {
		args  []string
		parts []string
	}{
		"another order":      {start(urls[1], urls[0], urls[2]), []string{"in another order", "is database 2 of 3, and was given as number 1", "in the order"}},
		"one is missing":     {start(urls[0], urls[2]), []string{"are in 3 databases, and 2 were given; missing: number 2"}},
		"one alone":          {start(urls[1]), []string{"is database 2 of 3: the sessions are in all of them"}},
		"one too many":       {start(urls[0], urls[1], urls[2], empty), []string{"is none of these", "in exactly 3 databases"}},
		"an empty one":       {start(urls[0], urls[1], empty), []string{"is none of these"}},
		"another store's":    {start(urls[0], urls[1], foreign[1]), []string{"do not belong together: each is one of several databases"}},
		"twice the same":     {start(urls[0], urls[0], urls[2]), []string{"was given twice"}},
		"no URL":             {start(urls[0], ""), []string{"--postgres has an empty value"}},
		"migrate from one":   {[]string{"migrate", "--from", urls[0], "--to", "sqlite:" + t.TempDir()}, []string{"is database 1 of 3, and migrate copies only"}},
		"migrate to one":     {[]string{"migrate", "--from", "sqlite:" + t.TempDir() + "/data", "--to", urls[0]}, nil},
		"migrate from three": {[]string{"migrate", "--from", urls[0], "--from", urls[1], "--to", "sqlite:x"}, []string{"not several databases"}},
		"verify two":         {append([]string{"verify"}, inDatabases(urls[:2]...)...), []string{"missing: number 3"}},
		"verify no store":    {append([]string{"verify"}, inDatabases(alone, empty)...), []string{"are not the databases of one store"}},
	} {
		t.Run(what, func(t *testing.T) { says(t, false, test.args, test.parts...) })
	}
	says(t, true, append([]string{"verify"}, pg.flags...), "no problems")
	says(t, true, []string{"verify", "--postgres", urls[1]}, "no problems")
	testserver.Start(t, t.TempDir()+"/again", pg.flags...).Stop(t)
}
