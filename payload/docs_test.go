package payload

import (
	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck/tapedeck"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A docType is what docs/events.md says of a type.
type docType struct {
	channel string
	members [][2]string // name, with ? if it may be left out, and shape
	example string
	sub     bool // it may be a subagent's
}

var (
	docHeading = regexp.MustCompile("^### `(.+)`$")
	docChannel = regexp.MustCompile("^## Channel `(.+)`$")
	docMember  = regexp.MustCompile("^\\| `(.+?)` \\| (.+?) \\|")
)

// readEvents reads the catalogue in docs/events.md. The members of messages are
// those of the type "".
func readEvents(t *testing.T) (order []string, types map[string]*docType) {
	t.Helper()
	text, err := os.ReadFile("docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	types = map[string]*docType{}
	channel := ""
	var doc *docType
	for l := range strings.Lines(string(text)) {
		l = strings.TrimRight(l, "\n")
		if m := docChannel.FindStringSubmatch(l); m != nil {
			channel = m[1]
		} else if m := docHeading.FindStringSubmatch(l); m != nil {
			doc = &docType{channel: channel}
			order, types[m[1]] = append(order, m[1]), doc
		} else if l == "## Messages" {
			doc = &docType{}
			types[""] = doc
		} else if l == "| role | content | must also have |" {
			return order, types // the last of what is compared
		} else if doc != nil {
			doc.read(l)
		}
	}
	t.Fatal("the document ends early")
	return nil, nil
}

func (d *docType) read(l string) {
	if m := docMember.FindStringSubmatch(l); m != nil {
		d.members = append(d.members, [2]string{m[1], m[2]})
	}
	if strings.HasPrefix(l, "{") {
		d.example = l
	}
	d.sub = d.sub || strings.HasSuffix(l, "May be a subagent's.")
}

func TestDocListsAllTypes(t *testing.T) {
	order, _ := readEvents(t)
	if want := tapedeck.EventTypes(); !cmp.Equal(order, want) {
		t.Error(cmp.Diff(want, order))
	}
}

func TestDocSaysWhatTypesHave(t *testing.T) {
	_, types := readEvents(t)
	for _, c := range catalogue {
		doc := types[c.name]
		if doc == nil {
			continue // see TestDocListsAllTypes
		}
		if doc.channel != tapedeck.ChannelOf(c.name) {
			t.Errorf("%s: channel %s", c.name, doc.channel)
		}
		_, attributed := reflect.TypeOf(c.data).FieldByName("Attributed")
		if attributed != doc.sub {
			t.Errorf("%s: that it may be a subagent's is said: %v", c.name, doc.sub)
		}
		if want := docMembers(reflect.TypeOf(c.data), attributed); !cmp.Equal(doc.members, want) {
			t.Errorf("%s: %s", c.name, cmp.Diff(want, doc.members))
		}
	}
}

func TestDocExamples(t *testing.T) {
	_, types := readEvents(t)
	for name, doc := range types {
		if name == "" {
			continue
		}
		var e tapedeck.Event
		if !e.scan([]byte(doc.example)) || e.Type != name || e.Channel != doc.channel {
			t.Errorf("%s: the example is %s", name, doc.example)
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
		if again := NewEvent(p); !cmp.Equal(tapedeck.canonical(t, again.Data), tapedeck.canonical(t, e.Data)) {
			t.Errorf("%s: %s became %s", name, e.Data, again.Data)
		}
	}
}

func TestDocSaysWhatMessagesHave(t *testing.T) {
	_, types := readEvents(t)
	if want := docMembers(reflect.TypeFor[Message](), false); !cmp.Equal(types[""].members, want) {
		t.Error(cmp.Diff(want, types[""].members))
	}
}

// docMembers returns the members of a struct as the document writes them,
// without those that any type may have.
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
