package postgres_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// TestVerify spoils the tables in many ways. Each one is a problem that Verify names, and
// without one there is none. Verify also works on a database that takes no writes.
func TestVerify(t *testing.T) {
	c := pgtest.Shared(t)
	for name, test := range map[string]struct{ statement, problem string }{
		"nothing":              {"SELECT 1", ""},
		"a hole":               {`DELETE FROM events WHERE "offset" = 1`, `has offset 2 where 1 belongs`},
		"a lost end":           {`DELETE FROM events WHERE "offset" = 2`, `has its head at 3 and its records end at 2`},
		"a wrong offset":       {`UPDATE events SET event = convert_to(replace(convert_from(event, 'UTF8'), '"offset":1', '"offset":9'), 'UTF8')`, `says that it is at 9`},
		"no JSON":              {`UPDATE events SET event = 'x' WHERE "offset" = 1`, `session "a"`},
		"no head":              {`DELETE FROM heads WHERE session = (SELECT gen FROM sessions WHERE id = 'a')`, `has no head`},
		"another title":        {`UPDATE sessions SET title = 'x' WHERE id = 'a'`, `the catalogue does not agree with the events of session "a": title is "x", but "" by the events`},
		"a wrong fork":         {`UPDATE lineage SET to_offset = 9`, `inherits offsets 0 to 9 of a session that does not have them`},
		"a wrong fork point":   {`UPDATE sessions SET fork_at = 1 WHERE id = 'b'`, `was forked at offset 1`},
		"no parent":            {`UPDATE sessions SET parent = 'x' WHERE id = 'b'`, `which is not stored`},
		"a wrong number":       {`UPDATE sessions SET forks = 7 WHERE id = 'a'`, `has 1 forks, but its stored count is 7`},
		"another text":         {`UPDATE events SET event = overlay(event placing 'X' from octet_length(event) - 3) WHERE "offset" = 1`, `session "a": the event at offset 1 is damaged: its bytes do not have its checksum`},
		"rows exchanged":       {`UPDATE events e SET event = o.event, sum = o.sum FROM events o WHERE e."offset" IN (0, 1) AND o."offset" = 1 - e."offset"`, `session "a": the event at offset 0 is damaged`},
		"of another session":   {`UPDATE events SET session = (SELECT gen FROM sessions WHERE id = 'b'), "offset" = 2 WHERE "offset" = 2`, `session "b": the event at offset 2 is damaged`},
		"no checksum":          {`UPDATE events SET sum = NULL WHERE "offset" = 1`, `the event at offset 1 has no checksum`},
		"no first checksum":    {`UPDATE events SET sum = NULL WHERE "offset" = 0`, `the event at offset 1 was not written after the one before it`},
		"a head moved back":    {`DELETE FROM events WHERE "offset" = 2; UPDATE heads SET head = 2 WHERE head = 3`, `its last event is not the one that was written last`},
		"events of nobody":     {`INSERT INTO events VALUES (999, 0, 'x')`, `1 events belong to no session`},
		"a producer of nobody": {`INSERT INTO producers VALUES (999, 'w', 0, 0, 0, 1)`, `1 rows of the table producers`},
	} {
		t.Run(name, func(t *testing.T) {
			o := postgres.Options{URL: place(t)}
			s := open(t, o)
			create(t, s, "a")
			for i := range 3 {
				add(t, s, "a", fmt.Sprint(i))
			}
			if _, err := s.Create(t.Context(), tapedeck.Spec{ID: "b", Parent: "a", ForkAt: new(int64(2))}); err != nil {
				t.Fatal(err)
			}
			u, _ := url.Parse(o.URL)
			if err := c.Exec("postgres", "SET search_path = "+u.Query().Get("search_path"), test.statement); err != nil {
				t.Fatal(err)
			}
			o.URL = with(o.URL, "default_transaction_read_only", "on")
			report, err := postgres.Verify(t.Context(), o, nil)
			found := strings.Join(report.Problems, "\n")
			if err != nil || (found == "") != (test.problem == "") || !strings.Contains(found, test.problem) {
				t.Errorf("got %q, %v, want %q", found, err, test.problem)
			}
			if test.problem == "" && (report.Sessions != 2 || report.Events != 3 || report.Bytes == 0) {
				t.Errorf("got %+v", report)
			}
		})
	}
	_, err := postgres.Verify(t.Context(), postgres.Options{URL: with(c.URL("postgres"), "search_path", "empty")}, nil)
	isNotFound(t, err)
}

func isNotFound(t testing.TB, err error) {
	t.Helper()
	if tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("got %v", err)
	}
}
