package bpmn

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// These are the namespaces that mean something here.
const (
	modelNamespace    = "http://www.omg.org/spec/BPMN/20100524/MODEL"
	tapedeckNamespace = "https://tapedeck.dev/bpmn"
	zeebeNamespace    = "http://camunda.org/schema/zeebe/1.0"
	xsiNamespace      = "http://www.w3.org/2001/XMLSchema-instance"
)

// camundaNamespaces are those of Camunda 7 and of the engines with the same attributes.
var camundaNamespaces = map[string]string{
	"http://camunda.org/schema/1.0/bpmn":  "camunda",
	"http://operaton.org/schema/1.0/bpmn": "operaton",
	"http://flowable.org/bpmn":            "flowable",
	"http://activiti.org/bpmn":            "activiti",
}

// diagramNamespaces describe what the diagram looks like.
var diagramNamespaces = map[string]bool{
	"http://www.omg.org/spec/BPMN/20100524/DI": true,
	"http://www.omg.org/spec/DD/20100524/DC":   true,
	"http://www.omg.org/spec/DD/20100524/DI":   true,
}

const (
	// MaxFile is the size of the largest file that is read, in bytes.
	MaxFile = 8 << 20

	maxLevels   = 100     // of elements in each other
	maxElements = 100_000 // that are kept

	maxAttributes = 1000 // of one element, each of which is compared with the others
	maxNamespace  = 1000 // bytes: a file writes it once, and each name that has it is looked up with it
)

// An element is an XML element with the line on which it begins.
type element struct {
	xml.Name
	attrs    []xml.Attr
	children []*element
	text     string
	line     int
	partial  bool // elements of another tool were in it, and are not in children
}

// attr returns an attribute without a namespace, "" if there is none.
func (e *element) attr(name string) string {
	v, _ := e.lookup("", name)
	return v
}

func (e *element) lookup(space, name string) (string, bool) {
	for _, a := range e.attrs {
		if a.Name.Space == space && a.Name.Local == name {
			return strings.TrimSpace(a.Value), true
		}
	}
	return "", false
}

// child returns the first child of BPMN with this name, nil if there is none.
func (e *element) child(name string) *element {
	for _, c := range e.children {
		if c.Space == modelNamespace && c.Local == name {
			return c
		}
	}
	return nil
}

// content returns the text of the element itself, without space around it.
func (e *element) content() string { return strings.TrimSpace(e.text) }

// extensions returns the extension elements of an element.
func (e *element) extensions() []*element {
	var out []*element
	for _, c := range e.children {
		if c.Space == modelNamespace && c.Local == "extensionElements" {
			out = append(out, c.children...)
		}
	}
	return out
}

// known reports whether a namespace means something here.
func known(space string) bool {
	return space == modelNamespace || space == tapedeckNamespace || space == zeebeNamespace || camundaNamespaces[space] != ""
}

// A parser builds the tree of a file.
type parser struct {
	decoder *xml.Decoder
	ids     map[string]int // the lines of the ids of BPMN
	kept    int
	problem []Problem
	warning []Problem // at most maxWarnings
	foreign map[outsider]bool
}

// parse returns the root of a file, with the problems and the warnings that need no more
// than its tree. It skips what the diagram looks like and the elements of tools that are
// unknown here.
func parse(data []byte) (root *element, problems, warnings []Problem) {
	if p := notXML(data); p != nil {
		return nil, []Problem{*p}, nil
	}
	p := &parser{decoder: xml.NewDecoder(bytes.NewReader(data)), ids: map[string]int{}, foreign: map[outsider]bool{}}
	p.decoder.CharsetReader = foreign
	root, err := p.root()
	if err != nil {
		line, _ := p.decoder.InputPos()
		var refused *refusal
		if errors.As(err, &refused) {
			return nil, append(p.problem, Problem{Line: refused.line, Message: refused.message, Hint: refused.hint}), nil
		}
		var syntax *xml.SyntaxError
		message := err.Error()
		if errors.As(err, &syntax) {
			line, message = syntax.Line, syntax.Msg
		}
		return nil, append(p.problem, Problem{Line: max(line, 1), Message: "the file is not well-formed XML: " + message}), nil
	}
	return root, p.problem, p.warning
}

// notXML recognizes files that people take for BPMN.
func notXML(data []byte) *Problem {
	text := bytes.TrimSpace(data)
	switch {
	case len(text) == 0:
		return &Problem{Line: 1, Message: "the file is empty"}
	case text[0] == '{', text[0] == '[':
		return &Problem{Line: 1, Message: "this is JSON, not the XML of BPMN", Hint: "give the text of the .bpmn file"}
	case text[0] != '<':
		return &Problem{Line: 1, Message: "this is not XML", Hint: "give the text of the .bpmn file, or save the diagram as BPMN 2.0 XML"}
	}
	return nil
}

// A refusal is an error of a file that is well-formed.
type refusal struct {
	line          int
	message, hint string
}

func (r *refusal) Error() string { return r.message }

func (p *parser) root() (*element, error) {
	var root *element
	for {
		line, _ := p.decoder.InputPos()
		token, err := p.decoder.Token()
		if errors.Is(err, io.EOF) {
			if root == nil {
				return nil, &refusal{max(line, 1), "the file has no element", ""}
			}
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		switch token := token.(type) {
		case xml.Directive:
			return nil, refuseDirective(line)
		case xml.StartElement:
			if root != nil {
				return nil, &refusal{line, "the file has more than one root element", ""}
			}
			if err := checkRoot(token, line); err != nil {
				return nil, err
			}
			if root, err = p.element(token, line, 1); err != nil {
				return nil, err
			}
		case xml.CharData:
			if len(bytes.TrimSpace(token)) > 0 {
				return nil, &refusal{line, "there is text outside of the root element", ""}
			}
		}
	}
}

func refuseNamespace(line int) error {
	return &refusal{line, fmt.Sprintf("a namespace has more than %d bytes", maxNamespace), ""}
}

func refuseDirective(line int) error {
	return &refusal{line, "the file has a DOCTYPE or another directive; they are refused, because entities can read files and fill the memory", "remove it: BPMN needs none"}
}

func checkRoot(start xml.StartElement, line int) error {
	switch {
	case start.Name.Local == "definitions" && start.Name.Space == modelNamespace:
		return nil
	case start.Name.Local == "definitions":
		return &refusal{line, fmt.Sprintf("the root element is definitions of %q, not of BPMN 2.0", start.Name.Space), "the namespace of BPMN 2.0 is " + modelNamespace}
	}
	return &refusal{line, fmt.Sprintf("the root element is %s, not definitions of BPMN 2.0", start.Name.Local), "save the diagram as BPMN 2.0 XML"}
}

// element reads an element up to its end.
func (p *parser) element(start xml.StartElement, line, level int) (*element, error) {
	if level > maxLevels {
		return nil, &refusal{line, fmt.Sprintf("the file has more than %d levels of elements", maxLevels), ""}
	}
	if p.kept++; p.kept > maxElements {
		return nil, &refusal{line, fmt.Sprintf("the file has more than %d elements", maxElements), ""}
	}
	if len(start.Attr) > maxAttributes {
		return nil, &refusal{line, fmt.Sprintf("an element has more than %d attributes", maxAttributes), ""}
	}
	for i, a := range start.Attr {
		if (a.Name.Space == "xmlns" || a.Name.Local == "xmlns") && len(a.Value) > maxNamespace {
			return nil, refuseNamespace(line)
		}
		if slices.ContainsFunc(start.Attr[:i], func(b xml.Attr) bool { return a.Name == b.Name }) {
			return nil, &refusal{line, fmt.Sprintf("the attribute %.100s of %.100s is there twice", a.Name.Local, start.Name.Local), ""}
		}
	}
	e := &element{Name: start.Name, attrs: start.Attr, line: line}
	p.remember(e)
	var text strings.Builder
	for {
		line, _ := p.decoder.InputPos()
		token, err := p.decoder.Token()
		if err != nil {
			return nil, err
		}
		switch token := token.(type) {
		case xml.Directive:
			return nil, refuseDirective(line)
		case xml.CharData:
			text.Write(token)
		case xml.EndElement:
			e.text = text.String()
			return e, nil
		case xml.StartElement:
			if skip, err := p.skip(token, line, e); skip || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
			c, err := p.element(token, line, level+1)
			if err != nil {
				return nil, err
			}
			e.children = append(e.children, c)
		}
	}
}

// skip skips an element that means nothing here, and reports whether it did. Elements of
// other namespaces are allowed in extension elements and for the look of the diagram.
func (p *parser) skip(start xml.StartElement, line int, parent *element) (bool, error) {
	space := start.Name.Space
	extension := parent.Space == modelNamespace && parent.Local == "extensionElements"
	switch {
	case len(space) > maxNamespace:
		return false, refuseNamespace(line)
	case parent.Space != modelNamespace, extension && known(space):
		return false, nil
	case extension, diagramNamespaces[space]:
	case space == modelNamespace:
		return false, nil
	default:
		p.outside(start.Name, line, parent)
		return true, p.drop(line, &start.Name)
	}
	return true, p.drop(line, nil)
}

// drop reads up to the end of an element without keeping anything. In an element of another
// tool, what is known here is refused: it would be lost.
func (p *parser) drop(line int, foreign *xml.Name) error {
	for level := 1; level > 0; {
		token, err := p.decoder.Token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.Directive:
			return refuseDirective(line)
		case xml.StartElement:
			if len(token.Name.Space) > maxNamespace {
				return refuseNamespace(line)
			}
			if foreign != nil {
				p.within(token.Name, *foreign, line)
			}
			if level++; level > maxLevels {
				return &refusal{line, fmt.Sprintf("the file has more than %d levels of elements", maxLevels), ""}
			}
		case xml.EndElement:
			level--
		}
	}
	return nil
}

// remember checks that the ids of BPMN are unique in the file.
func (p *parser) remember(e *element) {
	id := idOf(e)
	if e.Space != modelNamespace || id == "" {
		return
	}
	if first, ok := p.ids[id]; ok {
		p.problem = append(p.problem, Problem{Line: e.line, Element: id, Message: fmt.Sprintf("the id %s is not unique: line %d has it, too", id, first)})
		return
	}
	p.ids[id] = e.line
}

func idOf(e *element) string { return e.attr("id") }
