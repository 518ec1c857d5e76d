package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/audit"
)

// TestAuditExample: docs/security.md shows what the program prints.
func TestAuditExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "\n$ tapedeck audit --from 7d\n")
	example, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		t.Fatal("the example is not there")
	}
	const session = "ses_01M8G4B03QN00GCRCE9JEV4CEG"
	var out bytes.Buffer
	e := &env{stdout: &out}
	for _, r := range []api.AuditRecord{
		{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Action: "session.delete", Outcome: audit.Allowed, Actor: "ada", Role: "user", Session: session, Remote: "10.0.0.7", Request: "r-17"},
		{Time: time.Date(2026, 1, 2, 3, 5, 11, 0, time.UTC), Action: "access", Outcome: audit.Refused, Actor: "eve", Role: "user", Session: session, Remote: "10.0.0.9"},
	} {
		if err := e.printAuditRecord(&r); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != example {
		t.Errorf("it prints\n%sthe page has\n%s", &out, example)
	}
}
