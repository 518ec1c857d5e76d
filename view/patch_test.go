package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestPatch(t *testing.T) {
	for _, c := range []struct{ name, doc, patch, want string }{ // want "" means that the patch is refused
		{"add a member", `{"a":1}`, `[{"op":"add","path":"/b","value":2}]`, `{"a":1,"b":2}`},
		{"add replaces a member", `{"a":1}`, `[{"op":"add","path":"/a","value":2}]`, `{"a":2}`},
		{"add null", `{}`, `[{"op":"add","path":"/a","value":null}]`, `{"a":null}`},
		{"add without a value", `{}`, `[{"op":"add","path":"/a"}]`, ``},
		{"add an element", `{"a":[1,3]}`, `[{"op":"add","path":"/a/1","value":2}]`, `{"a":[1,2,3]}`},
		{"add at the end", `{"a":[1]}`, `[{"op":"add","path":"/a/-","value":2},{"op":"add","path":"/a/2","value":3}]`, `{"a":[1,2,3]}`},
		{"add beyond the end", `{"a":[1]}`, `[{"op":"add","path":"/a/2","value":2}]`, ``},
		{"add into nothing", `{}`, `[{"op":"add","path":"/a/b","value":2}]`, ``},
		{"add into a string", `{"a":"x"}`, `[{"op":"add","path":"/a/b","value":2}]`, ``},
		{"add all", `{"a":1}`, `[{"op":"add","path":"","value":[1]}]`, `[1]`},
		{"remove a member", `{"a":1,"b":2}`, `[{"op":"remove","path":"/a"}]`, `{"b":2}`},
		{"remove an element", `[1,2,3]`, `[{"op":"remove","path":"/1"}]`, `[1,3]`},
		{"remove nothing", `{}`, `[{"op":"remove","path":"/a"}]`, ``},
		{"remove the element after the last", `[1]`, `[{"op":"remove","path":"/-"}]`, ``},
		{"remove all", `{}`, `[{"op":"remove","path":""}]`, `null`},
		{"replace", `{"a":{"b":1}}`, `[{"op":"replace","path":"/a/b","value":[]}]`, `{"a":{"b":[]}}`},
		{"replace an element", `[1,2]`, `[{"op":"replace","path":"/0","value":"x"}]`, `["x",2]`},
		{"replace nothing", `{}`, `[{"op":"replace","path":"/a","value":1}]`, ``},
		{"move", `{"a":{"b":1},"c":{}}`, `[{"op":"move","from":"/a/b","path":"/c/d"}]`, `{"a":{},"c":{"d":1}}`},
		{"move in an array", `[1,2,3]`, `[{"op":"move","from":"/0","path":"/2"}]`, `[2,3,1]`},
		{"move deeper", `{"a":1,"b":{"c":{}}}`, `[{"op":"move","from":"/a","path":"/b/c/d"}]`, `{"b":{"c":{"d":1}}}`},
		{"move into itself", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, ``},
		{"move an element into itself", `{"a":[{},{}]}`, `[{"op":"move","from":"/a/0","path":"/a/0/b"}]`, ``},
		{"move to where it is", `{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
		{"copy", `{"a":[1]}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/a/-","value":2}]`, `{"a":[1,2],"b":[1]}`},
		{"copy into itself", `{"a":1}`, `[{"op":"copy","from":"","path":"/b"}]`, `{"a":1,"b":{"a":1}}`},
		{"test", `{"a":[1.0,{"x":"y","z":null}]}`, `[{"op":"test","path":"/a","value":[1,{"z":null,"x":"y"}]}]`, `{"a":[1.0,{"x":"y","z":null}]}`},
		{"test fails", `{"a":1}`, `[{"op":"test","path":"/a","value":"1"}]`, ``},
		{"test of another length", `[1]`, `[{"op":"test","path":"","value":[1,2]}]`, ``},
		{"escapes", `{"a/b":1,"m~n":2,"":3,"~1":4}`, `[{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/m~0n"},{"op":"remove","path":"/"},{"op":"remove","path":"/~01"}]`, `{}`},
		{"an index is written in one way", `[1]`, `[{"op":"remove","path":"/00"}]`, ``},
		{"an index has no sign", `[1]`, `[{"op":"remove","path":"/+0"}]`, ``},
		{"a path begins with a slash", `{"a":1}`, `[{"op":"remove","path":"a"}]`, ``},
		{"no path", `{"a":1}`, `[{"op":"remove"}]`, ``},
		{"no from", `{"a":1}`, `[{"op":"copy","path":"/b"}]`, ``},
		{"unknown operation", `{"a":1}`, `[{"op":"increment","path":"/a"}]`, ``},
		{"members of no meaning", `{}`, `[{"op":"add","path":"/a","value":1,"xyz":2}]`, `{"a":1}`},
		{"not a list", `{}`, `{"op":"add","path":"/a","value":1}`, ``},
		{"big numbers stay", `{"n":12345678901234567890}`, `[{"op":"copy","from":"/n","path":"/m"}]`, `{"m":12345678901234567890,"n":12345678901234567890}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := state{raw: json.RawMessage(c.doc)}
			d, err := newDocument(s.raw, new(patchBudget))
			if err != nil {
				t.Fatal(err)
			}
			s.doc = d
			before := string(s.value())
			err = d.patch(json.RawMessage(c.patch))
			switch got := string(s.value()); {
			case c.want == "" && err == nil:
				t.Errorf("accepted; it is now %s", got)
			case c.want == "" && got != before:
				t.Errorf("refused, and yet %s became %s", before, got)
			case c.want != "" && (err != nil || got != c.want):
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestPatchIsAppliedWholeOrNotAtAll: if an operation does not fit, those before
// it are undone.
func TestPatchIsAppliedWholeOrNotAtAll(t *testing.T) {
	const doc = `{"a":[1,2,{"b":"c"}],"m":{"x":1},"n":null}`
	ops := []string{
		`{"op":"add","path":"/a/1","value":{"new":[]}}`, `{"op":"add","path":"/a/1/new/-","value":1}`,
		`{"op":"remove","path":"/a/0"}`, `{"op":"replace","path":"/m","value":[1]}`,
		`{"op":"move","from":"/n","path":"/a/0"}`, `{"op":"copy","from":"/a","path":"/m/-"}`,
		`{"op":"add","path":"/z","value":1}`, `{"op":"replace","path":"","value":{"gone":true}}`, `{"op":"remove","path":""}`,
	}
	for n := range len(ops) + 1 {
		d, _ := newDocument(json.RawMessage(doc), new(patchBudget))
		patch := "[" + strings.Join(append(ops[:n:n], `{"op":"test","path":"/never","value":0}`), ",") + "]"
		if d.patch(json.RawMessage(patch)) == nil {
			t.Fatal("accepted")
		}
		if got := string((&state{doc: d}).value()); got != doc {
			t.Errorf("after %d operations and one that does not fit: %s", n, got)
		}
		all := "[" + strings.Join(ops[:n], ",") + "]"
		if err := d.patch(json.RawMessage(all)); err != nil {
			t.Errorf("%d operations that fit: %v", n, err)
		}
	}
}

// TestPatchHasABudget: patches of a few bytes must not make a document too
// large to keep or too deep to encode, and must not cost much time.
func TestPatchHasABudget(t *testing.T) {
	double := `[{"op":"copy","from":"","path":"/a"}]`
	for name, patch := range map[string]func(i int) string{
		"doubling":           func(int) string { return double },
		"doubling in a list": func(int) string { return `[{"op":"copy","from":"/list","path":"/list/-"}]` },
		"copy and remove":    func(int) string { return `[{"op":"copy","from":"/big","path":"/b"},{"op":"remove","path":"/b"}]` },
		"insert in front":    func(int) string { return `[{"op":"copy","from":"/many","path":"/many/0"}]` },
		"nest deeper":        func(i int) string { return fmt.Sprintf(`[{"op":"move","from":"/deep","path":"/x%d"}]`, i) },
		"depth of many moves": func(int) string {
			return `[{"op":"add","path":"/m","value":{}},{"op":"move","from":"/deep","path":"/m/deep"},{"op":"move","from":"/m","path":"/deep"}]`
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := newDocument(json.RawMessage(`{"list":[1],"deep":{},"big":"`+strings.Repeat("x", 1<<18)+`","many":[`+strings.Repeat("0,", 1<<16)+`0]}`), new(patchBudget))
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5000 {
				_ = d.patch(json.RawMessage(patch(i)))
			}
			if n := size(d.root, 1<<40); n > 16<<20 {
				t.Errorf("5,000 small patches made a document of %d bytes", n)
			}
			if n := depth(d.root); n > maxDepth {
				t.Errorf("it nests %d deep", n)
			}
		})
	}
}

// TestBudgetIsEnoughForHonestWork: an agent that keeps a list in its state and
// patches it does not run out of budget.
func TestBudgetIsEnoughForHonestWork(t *testing.T) {
	d, _ := newDocument(json.RawMessage(`{"items":[],"done":0}`), new(patchBudget))
	for i := range 20000 {
		p := fmt.Sprintf(`[{"op":"add","path":"/items/-","value":{"id":%d}},{"op":"replace","path":"/done","value":%d}]`, i, i)
		if i%10 == 0 {
			p = `[{"op":"add","path":"/items/0","value":{"title":"urgent"}},{"op":"move","from":"/items/1","path":"/items/2"}]`
		}
		if err := d.patch(json.RawMessage(p)); err != nil && i > 10 {
			t.Fatalf("patch %d: %v", i, err)
		}
	}
}
