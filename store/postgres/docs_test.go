package postgres_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// TestDocumentedStatements runs every SQL statement of docs/postgres.md while a store is
// open.
func TestDocumentedStatements(t *testing.T) {
	doc, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	c := pgtest.Shared(t)
	db, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{URL: c.URL(db)})
	for _, spec := range []tapedeck.Spec{
		{ID: "parent", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{"title":"A talk"}`)}}},
		{ID: "demo_hello", Parent: "parent", Events: say("hello")},
	} {
		if _, err := s.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.URL(db))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	want := map[string]string{"tapedeck.catalogue": "demo_hello", "tapedeck.log": "session.created TEXT_MESSAGE_CONTENT"}
	n := 0
	for _, statement := range regexp.MustCompile(`(?m)^(SELECT|VACUUM|CHECKPOINT).*;$`).FindAllString(string(doc), -1) {
		n++
		rows, err := conn.Query(ctx, statement)
		var got []string
		for err == nil && rows.Next() {
			values, verr := rows.Values()
			if verr != nil {
				t.Error(verr)
			}
			for _, v := range values {
				if text, ok := v.(string); ok {
					got = append(got, text)
				}
			}
		}
		if err == nil {
			err = rows.Err()
		}
		if err != nil {
			t.Errorf("%s: %v", statement, err)
		}
		for table, words := range want {
			if strings.Contains(statement, table) && !strings.Contains(strings.Join(got, " "), words) {
				t.Errorf("%s: got %q", statement, got)
			}
		}
	}
	if n != 4 {
		t.Errorf("the page has %d statements", n)
	}
	add(t, s, "demo_hello", "and on")
}
