package payload

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/catalogdoc"
)

func TestDocListsAllTypes(t *testing.T) {
	order, _ := catalogdoc.Read(t, "../docs/events.md")
	if want := EventTypes(); !cmp.Equal(order, want) {
		t.Error(cmp.Diff(want, order))
	}
}

func TestDocSaysWhatTypesHave(t *testing.T) {
	_, types := catalogdoc.Read(t, "../docs/events.md")
	for _, c := range catalogue {
		doc := types[c.name]
		if doc == nil {
			continue // see TestDocListsAllTypes
		}
		if doc.Channel != tapedeck.ChannelOf(c.name) {
			t.Errorf("%s: channel %s", c.name, doc.Channel)
		}
		_, attributed := reflect.TypeOf(c.data).FieldByName("Attributed")
		if attributed != doc.Subagent {
			t.Errorf("%s: that it may be a sub-agent's is said: %v", c.name, doc.Subagent)
		}
		if want := docMembers(reflect.TypeOf(c.data), attributed); !cmp.Equal(doc.Members, want) {
			t.Errorf("%s: %s", c.name, cmp.Diff(want, doc.Members))
		}
	}
}

func TestDocExamples(t *testing.T) {
	_, types := catalogdoc.Read(t, "../docs/events.md")
	for name, doc := range types {
		if name == "" {
			continue
		}
		var e tapedeck.Event
		if json.Unmarshal([]byte(doc.Example), &e) != nil || e.Type != name || e.Channel != doc.Channel {
			t.Errorf("%s: the example is %s", name, doc.Example)
			continue
		}
		if err := e.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := CheckData(&e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		p, err := Decode(e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if extra := reflect.ValueOf(p).FieldByName("Extra"); extra.Len() > 0 {
			t.Errorf("%s: the example has members that the type has not: %v", name, extra)
		}
		if again := NewEvent(p); !cmp.Equal(canonical(t, again.Data), canonical(t, e.Data)) {
			t.Errorf("%s: %s became %s", name, e.Data, again.Data)
		}
	}
}

func TestDocSaysWhatMessagesHave(t *testing.T) {
	_, types := catalogdoc.Read(t, "../docs/events.md")
	if want := docMembers(reflect.TypeFor[Message](), false); !cmp.Equal(types[""].Members, want) {
		t.Error(cmp.Diff(want, types[""].Members))
	}
}

// docMembers returns the members of a struct as the document writes them,
// without those that every type may have.
func docMembers(typ reflect.Type, attributed bool) (members [][2]string) {
	common := map[string]bool{}
	if _, ok := typ.FieldByName("Common"); ok {
		common = map[string]bool{"timestamp": true, "metadata": true, "rawEvent": true, "subagentRunId": attributed}
	}
	for _, f := range layoutOf(typ).fields {
		if common[f.name] {
			continue
		}
		name := f.name
		if !f.required {
			name += "?"
		}
		members = append(members, [2]string{name, docShape(typ, &f)})
	}
	return members
}

var docShapes = map[shape]string{
	shapeAny: "any", shapeSome: "not null", shapeString: "string", shapeID: "id", shapeInteger: "integer", shapeNumber: "number",
	shapeBool: "boolean", shapeObject: "object", shapeArray: "array", shapeStrings: "strings", shapeLabels: "labels", shapeText: "text",
	shapePatch: "patch", shapeCuts: "cuts",
}

var docCamel = regexp.MustCompile("([a-z])([A-Z])")

func docShape(typ reflect.Type, f *field) string {
	if s := docShapes[f.shape]; s != "" {
		return s
	}
	t, list := typ.FieldByIndex(f.index).Type, ""
	if t.Kind() == reflect.Slice {
		list = "list of "
	}
	if t.Kind() != reflect.Struct {
		t = t.Elem()
	}
	return list + strings.ToLower(docCamel.ReplaceAllString(t.Name(), "$1 $2"))
}
