package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A patchCase is a case of the public suite, see testdata/jsonpatch.
type patchCase struct {
	Comment  string
	Doc      json.RawMessage
	Patch    json.RawMessage
	Expected json.RawMessage
	Error    string
	Disabled bool
}

func TestPublicPatchSuite(t *testing.T) {
	cases := 0
	for _, name := range []string{"spec_tests.json", "tests.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", "jsonpatch", name))
		if err != nil {
			t.Fatal(err)
		}
		var list []patchCase
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		for i, c := range list {
			if c.Patch != nil && !c.Disabled {
				cases++
				c.check(t, name, i)
			}
		}
	}
	if cases < 90 {
		t.Errorf("only %d cases", cases)
	}
}

func (c *patchCase) check(t *testing.T, name string, i int) {
	t.Helper()
	d, err := newDocument(c.Doc, &patchBudget{})
	if err != nil {
		t.Fatalf("%s %d: %v", name, i, err)
	}
	err = d.patch(c.Patch)
	switch {
	case c.Error != "" && err == nil:
		t.Errorf("%s %d (%s): it was applied, want %s", name, i, c.Comment, c.Error)
	case c.Error == "" && err != nil:
		t.Errorf("%s %d (%s): %v", name, i, c.Comment, err)
	case c.Error == "" && c.Expected != nil:
		want, err := decodeValue(c.Expected)
		if err != nil || !equal(d.root, want) {
			t.Errorf("%s %d (%s): %s, want %s", name, i, c.Comment, (&state{doc: d}).value(), c.Expected)
		}
	}
}
