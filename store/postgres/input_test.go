package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// with changes the parameters of an address.
func with(address string, params ...string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	for i := 0; i < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// tables returns the tables of a schema.
func tables(t testing.TB, c *pgtest.Cluster, database, schema string) (out []string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT tablename::text FROM pg_tables WHERE schemaname = $1`, schema)
	if err != nil {
		t.Fatal(err)
	}
	out, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBadInput: whatever is wrong with the address or the database, the error is a
// sentence with a hint, it does not have the password, and nothing was created.
func TestBadInput(t *testing.T) {
	c := pgtest.Shared(t)
	db, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	latin := db + "_latin"
	for _, statement := range []string{
		`CREATE ROLE secured LOGIN PASSWORD 'right'`, `CREATE ROLE locked LOGIN`, `CREATE ROLE guest LOGIN`,
		`CREATE DATABASE "` + latin + `" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`,
	} {
		if err := c.Exec("postgres", statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Exec(db, `CREATE SCHEMA shop`, `CREATE TABLE shop.orders (id int)`, `CREATE SCHEMA theirs`,
		`CREATE TABLE theirs.migrations (id int)`, `CREATE TABLE theirs.users (id int)`, `CREATE SCHEMA narrow`, `GRANT USAGE ON SCHEMA narrow TO guest`); err != nil {
		t.Fatal(err)
	}
	secured := strings.Replace(c.URLFor("secured", db), "secured@", "secured:hunter2@", 1)
	for name, test := range map[string]struct {
		url  string
		kind tapedeck.Kind
		part string
	}{
		"no URL":               {"postgres://a:hunter2@[::bad", tapedeck.Invalid, "cannot be read"},
		"a bad port":           {"postgres://a:hunter2@localhost:x/db", tapedeck.Invalid, "cannot be read"},
		"a bad value":          {with(c.URL(db), "connect_timeout", "soon"), tapedeck.Invalid, "cannot be read"},
		"two schemas":          {with(c.URL(db), "search_path", "a,b"), tapedeck.Invalid, "not the name of one schema"},
		"nobody listens":       {"postgres://a:hunter2@127.0.0.1:1/db", tapedeck.Unavailable, "does not answer"},
		"no database":          {c.URL("nowhere"), tapedeck.Unavailable, `there is no database "nowhere"`},
		"a wrong password":     {secured, tapedeck.Unavailable, "refuses the password"},
		"an unknown user":      {c.URLFor("stranger", db), tapedeck.Unavailable, `does not let user "stranger" into`},
		"a user kept out":      {c.URLFor("locked", db), tapedeck.Unavailable, `does not let user "locked" into`},
		"no right to create":   {c.URLFor("guest", db), tapedeck.Forbidden, "may not use or create the schema tapedeck"},
		"no right to tables":   {with(c.URLFor("guest", db), "search_path", "narrow"), tapedeck.Forbidden, "may not use or create the schema narrow"},
		"a read-only target":   {with(c.URL(db), "default_transaction_read_only", "on"), tapedeck.Conflict, "takes no writes"},
		"tables of others":     {with(c.URL(db), "search_path", "shop"), tapedeck.Conflict, "tables that are not Tapedeck's"},
		"migrations of others": {with(c.URL(db), "search_path", "theirs"), tapedeck.Conflict, "tables that are not Tapedeck's"},
	} {
		_, err := postgres.Open(t.Context(), postgres.Options{URL: test.url})
		t.Log(name, ": ", err)
		isError(t, err, test.kind, test.part)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the sentence", name)
		}
	}
	_, err = postgres.Open(t.Context(), postgres.Options{URL: c.URL(latin)})
	isError(t, err, tapedeck.Unsupported, "encoding LATIN1")
	for schema, want := range map[string]int{"tapedeck": 0, "shop": 1, "theirs": 2, "narrow": 0} {
		if got := tables(t, c, db, schema); len(got) != want {
			t.Errorf("the schema %s has the tables %v", schema, got)
		}
	}
}

// TestPasswordChanged: if the database refuses a running server, its callers get an error
// of the server, not one about their own rights. It goes on when it is let in again.
func TestPasswordChanged(t *testing.T) {
	c := pgtest.New(t)
	if err := c.Exec("postgres", `CREATE ROLE secured LOGIN SUPERUSER PASSWORD 'right'`); err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{URL: strings.Replace(c.URLFor("secured", "postgres"), "secured@", "secured:right@", 1)})
	create(t, s, "a")
	add(t, s, "a", "one")
	const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'secured'`
	if err := c.Exec("postgres", `ALTER ROLE secured PASSWORD 'another'`, end); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"it is not certain", "does not let the server in"} {
		_, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: say("lost")})
		isError(t, err, tapedeck.Unavailable, part)
	}
	if _, err := s.Read(t.Context(), "a", tapedeck.Range{}); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("a read gives %v", err)
	}
	if err := c.Exec("postgres", `ALTER ROLE secured PASSWORD 'right'`); err != nil {
		t.Fatal(err)
	}
	add(t, s, "a", "two")
	if got := texts(t, s, "a"); fmt.Sprint(got) != "[one two]" {
		t.Errorf("got %v", got)
	}
}

// TestNewerSchema: what a newer program wrote is refused and stays as it is.
func TestNewerSchema(t *testing.T) {
	c := pgtest.Shared(t)
	db, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	o := postgres.Options{URL: c.URL(db)}
	s := open(t, o)
	create(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Exec(db, `INSERT INTO tapedeck.migrations (version_id, is_applied) VALUES (9999, true)`); err != nil {
		t.Fatal(err)
	}
	_, err = postgres.Open(t.Context(), o)
	isError(t, err, tapedeck.Conflict, "was written by a newer Tapedeck (its schema is number 9999")
	_, err = postgres.Verify(t.Context(), o, nil)
	isError(t, err, tapedeck.Conflict, "was written by a newer Tapedeck")
	if err := c.Exec(db, `DELETE FROM tapedeck.migrations WHERE version_id = 9999`); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, open(t, o), "a"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestManyFirstStarts: several servers start at once on an empty database. One of them
// owns it, and the others are refused with a sentence.
func TestManyFirstStarts(t *testing.T) {
	c := pgtest.Shared(t)
	db, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	const servers = 4
	type result struct {
		s   *postgres.Store
		err error
	}
	results := make(chan result, servers)
	for range servers {
		go func() {
			s, err := postgres.Open(context.Background(), postgres.Options{URL: c.URL(db), Lease: postgres.DefaultLease / 10})
			results <- result{s, err}
		}()
	}
	owners := 0
	for range servers {
		r := <-results
		if r.err == nil {
			owners++
			defer r.s.Close()
			continue
		}
		isError(t, r.err, tapedeck.Conflict, "another server writes to")
	}
	if owners != 1 {
		t.Errorf("%d servers own the database", owners)
	}
}

// TestText: what the type text cannot hold comes back as it was.
func TestText(t *testing.T) {
	o := postgres.Options{URL: place(t)}
	s := open(t, o)
	const odd = "a\x00b\x1a00\xff\xc3\x1a é\u2028"
	if _, err := s.Create(t.Context(), tapedeck.Spec{ID: "a", Origin: odd, ContentType: odd}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: say("x"), StreamSeq: odd, Producer: &tapedeck.Producer{ID: odd}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	if v, err := s.Head(t.Context(), "a"); err != nil || v.Origin != odd || v.ContentType != odd {
		t.Errorf("got %q and %q, %v", v.Origin, v.ContentType, err)
	}
	done, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: say("x"), StreamSeq: odd, Producer: &tapedeck.Producer{ID: odd}})
	if err != nil || !done.Duplicate {
		t.Errorf("a repeated append gives %+v, %v", done, err)
	}
}

// TestChangedByAnother: a program that changes the tables of a running server makes one
// append fail, and nothing is written twice or at a wrong offset.
func TestChangedByAnother(t *testing.T) {
	address := place(t)
	s := open(t, postgres.Options{URL: address})
	create(t, s, "a")
	add(t, s, "a", "one")
	u, _ := url.Parse(address)
	schema := u.Query().Get("search_path")
	if err := pgtest.Shared(t).Exec("postgres", `SET search_path = `+schema,
		`INSERT INTO events SELECT session, 1, event FROM events`, `UPDATE heads SET head = 2`); err != nil {
		t.Fatal(err)
	}
	_, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: say("two")})
	isError(t, err, tapedeck.Unavailable, "could not be stored")
	if done := add(t, s, "a", "three"); done.First != 2 {
		t.Errorf("it is at offset %d", done.First)
	}
}
