package apischema

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/docs"
	"github.com/tapedeck/tapedeck/internal/catalogdoc"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

const root = "../.."

// The committed files are those that are generated from the code as it is.
func TestFilesAreUpToDate(t *testing.T) {
	if err := Check(root); err != nil {
		t.Error(err)
	}
}

// Generating twice gives the same: nothing depends on the order of a map.
func TestDeterministic(t *testing.T) {
	a, err := Generate(root)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name := range a {
		if string(a[name]) != string(b[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

func checker(t *testing.T) *Checker {
	t.Helper()
	c, err := NewChecker(docs.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every reference has a target, every operation a name of its own, and every
// parameter a description.
func TestDocumentIsWhole(t *testing.T) {
	c, ids := checker(t), map[string]bool{}
	for part := range strings.SplitSeq(string(docs.OpenAPI), `"`) {
		if name, ok := strings.CutPrefix(part, refPrefix); ok && c.defs[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
	for _, r := range rest.Routes() {
		op := c.paths[r.Path][strings.ToLower(r.Method)]
		if op == nil || ids[op.ID] || op.Summary == "" || op.Description == "" {
			t.Errorf("%s %s is %+v", r.Method, r.Path, op)
			continue
		}
		ids[op.ID] = true
		for _, p := range op.Parameters {
			if p.Description == "" {
				t.Errorf("%s %s: the parameter %s has no description", r.Method, r.Path, p.Name)
			}
		}
	}
}

// The examples of docs/events.md fit the schemas of their types, and what an erasure
// leaves of them does so, too.
func TestCatalogue(t *testing.T) {
	c := checker(t)
	order, types := catalogdoc.Read(t, root+"/docs/events.md")
	if !slices.Equal(order, payload.EventTypes()) {
		t.Fatal("the catalogue is not read")
	}
	for _, name := range order {
		if err := c.Schema("KnownEvent", []byte(types[name].Example)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var erased tapedeck.Event
		if err := json.Unmarshal([]byte(types[name].Example), &erased); err != nil {
			t.Fatal(err)
		}
		erased.Data = payload.Blank(&erased)
		blank, err := json.Marshal(&erased)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Schema("KnownEvent", blank); err != nil {
			t.Errorf("%s, erased: %v", name, err)
		}
		var e map[string]json.RawMessage
		if err := json.Unmarshal([]byte(types[name].Example), &e); err != nil {
			t.Fatal(err)
		}
		e["offset"], e["data"] = json.RawMessage("-1"), json.RawMessage("5")
		broken, _ := json.Marshal(e)
		if c.Schema("Event", broken) == nil {
			t.Errorf("%s: an event at a negative offset, whose data is a number, fits", name)
		}
	}
	if err := c.Schema("Event", []byte(`{"offset":1,"type":"acme.said","channel":"chunks","timestamp":"2026-01-05T12:34:56.789Z","data":{"a":[1]}}`)); err != nil {
		t.Error(err)
	}
}

// The checker notices what is wrong; the tests of protocol/rest depend on it.
func TestChecker(t *testing.T) {
	c := checker(t)
	for name, err := range map[string]error{
		"an unknown path":      c.Answer("GET", "/nothing", 200, typeJSON, []byte(`{}`)),
		"an unknown status":    c.Answer("GET", "/sessions/s", 299, typeJSON, []byte(`{}`)),
		"a missing member":     c.Answer("GET", "/agents", 200, typeJSON, []byte(`{}`)),
		"a member more":        c.Answer("GET", "/agents", 200, typeJSON, []byte(`{"agents":[],"more":1}`)),
		"another type":         c.Answer("GET", "/agents", 200, typeJSON, []byte(`{"agents":null}`)),
		"an error of no kind":  c.Answer("GET", "/agents", 400, typeJSON, []byte(`{"error":{"kind":"odd","message":"m"}}`)),
		"an unknown parameter": c.Request("GET", "/agents", map[string][]string{"x": {"1"}}, "", nil),
		"an unknown member":    c.Request("POST", "/sessions/s/rewind", nil, typeJSON, []byte(`{"offset":1}`)),
		"a required member":    c.Request("POST", "/sessions/s/overwrite", nil, typeJSON, []byte(`{}`)),
		"a body for nothing":   c.Request("GET", "/agents", nil, typeJSON, []byte(`{}`)),
	} {
		if err == nil {
			t.Errorf("%s passes", name)
		}
	}
	for name, err := range map[string]error{
		"an answer":           c.Answer("GET", "/agents", 200, typeJSON, []byte(`{"agents":[{"name":"a","kind":"script"}]}`)),
		"a request":           c.Request("POST", "/sessions/s/overwrite", nil, typeJSON, []byte(`{"from_offset":0}`)),
		"a literal path":      c.Request("POST", "/sessions/run", nil, typeJSON, []byte(`{"task":"t"}`)),
		"an error with hint":  c.Answer("GET", "/agents", 400, typeJSON, []byte(`{"error":{"kind":"invalid","message":"m","hint":"h"}}`)),
		"the token parameter": c.Request("GET", "/agents", map[string][]string{"token": {"1"}}, "", nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
