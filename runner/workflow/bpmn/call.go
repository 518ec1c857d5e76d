package bpmn

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// diagramElement is the extension element of a file in which another file is, in base64: a
// file may have any encoding, and whatever XML cannot quote.
const diagramElement = "diagram"

// maxCallDepth is how deep files can be that call each other.
const maxCallDepth = 20

// rootEnd is the end of a file's root element.
var rootEnd = regexp.MustCompile(`</(?:[\w.-]+:)?definitions\s*>`)

// Embed puts the files into a file whose processes its call activities run, and which it
// does not have. So a run has all that it needs in one text, whatever is stored later. Find
// returns a file by the name that a call activity gives, or an error of kind
// [tapedeck.NotFound]; [Read] refuses the call then. The file is in UTF-8 then; one that
// cannot be read is returned as it is.
func Embed(file []byte, find func(name string) ([]byte, error)) ([]byte, error) {
	if file = UTF8(file); len(file) > MaxFile || !bytes.Contains(file, []byte(CallActivity)) {
		return file, nil // most files: they are not read twice
	}
	root, _, _ := parse(file)
	ends := rootEnd.FindAllIndex(file, -1)
	if root == nil || len(ends) == 0 {
		return file, nil
	}
	has, size := embeddedIn(root), len(file)
	var more bytes.Buffer
	for todo := callsIn(root); len(todo) > 0; todo = todo[1:] {
		name := todo[0]
		if _, ok := has[name]; ok {
			continue
		}
		has[name] = ""
		called, err := find(name)
		if tapedeck.KindOf(err) == tapedeck.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		called = UTF8(called)
		text := base64.StdEncoding.EncodeToString(called)
		if size += len(text); size > MaxFile {
			return nil, tapedeck.Errorf(tapedeck.TooLarge, "the diagram is larger than %d MiB with the diagrams that it calls", MaxFile>>20)
		}
		fmt.Fprintf(&more, "<t:%s name=%q>%s</t:%[1]s>", diagramElement, name, text)
		if root, _, _ := parse(called); root != nil {
			todo = append(todo, callsIn(root)...)
		}
	}
	if more.Len() == 0 {
		return file, nil
	}
	end := ends[len(ends)-1][0]
	return slices.Concat(file[:end], []byte(`<m:extensionElements xmlns:m="`+modelNamespace+`" xmlns:t="`+tapedeckNamespace+`">`), more.Bytes(), []byte("</m:extensionElements>"), file[end:]), nil
}

// namePattern is what names of files can be, see Embed.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// callsIn returns the names of processes that a file calls and does not have.
func callsIn(root *element) (names []string) {
	own := map[string]bool{}
	for _, e := range root.children {
		own[idOf(e)] = true // processes and global tasks
	}
	root.each(func(e *element) {
		if e.Space != modelNamespace || e.Local != string(CallActivity) {
			return
		}
		if name := calledBy(e); namePattern.MatchString(name) && !own[name] {
			names = append(names, name)
		}
	})
	return names
}

// calledBy returns the process that a call activity names, "" for none.
func calledBy(e *element) string {
	name := local(e.attr("calledElement"))
	for _, x := range e.extensions() {
		if x.Space == zeebeNamespace && x.Local == "calledElement" && x.attr("processId") != "" {
			name = x.attr("processId")
		}
	}
	return name
}

// embeddedIn returns the files in a file, by their names.
func embeddedIn(root *element) map[string]string {
	out := map[string]string{}
	for _, x := range root.extensions() {
		if x.Space == tapedeckNamespace && x.Local == diagramElement {
			out[x.attr("name")] = x.content()
		}
	}
	return out
}

// A caller reads the files that are in a file, each once.
type caller struct {
	files map[string]string // by name, in base64
	read  map[string]called
	open  []string // those that are being read
}

type called struct {
	d   *Definitions
	err error
}

// call returns a file by its name.
func (c *caller) call(name string) (*Definitions, error) {
	if known, ok := c.read[name]; ok {
		return known.d, known.err
	}
	switch {
	case slices.Contains(c.open, name):
		return nil, fmt.Errorf("it calls itself: %s", strings.Join(append(c.open, name), ", "))
	case len(c.open) >= maxCallDepth:
		return nil, fmt.Errorf("more than %d diagrams call each other", maxCallDepth)
	}
	data, err := base64.StdEncoding.DecodeString(c.files[name])
	if err != nil {
		return nil, fmt.Errorf("the embedded diagram is not base64: %w", err)
	}
	c.open = append(c.open, name)
	d, err := Read(bytes.NewReader(data), Options{prefix: name + ".", caller: c})
	c.open = c.open[:len(c.open)-1]
	c.read[name] = called{d, err}
	return d, err
}

// calls connects the call activities with the processes that they run.
func (r *reader) calls() {
	for _, p := range r.Processes {
		r.process = p
		each(&p.Scope, func(n *Node) {
			if n.Kind == CallActivity && n.CalledProcess != "" {
				r.connectCall(n)
			}
		})
	}
	r.process = nil
}

func (r *reader) connectCall(n *Node) {
	if n.Called = r.Process(n.CalledProcess); n.Called != nil {
		n.CalledIn = r.Definitions
		return
	}
	if _, ok := r.options.caller.files[n.CalledProcess]; !ok {
		r.missing(n)
		return
	}
	d, err := r.options.caller.call(n.CalledProcess)
	if err != nil {
		r.refuse(atNode(n), "", "the call activity runs the diagram %q, which cannot run: %v", n.CalledProcess, err)
		return
	}
	n.CalledIn, n.Called = d, d.Main
	r.adopt(n, d)
}

// missing says that a process is not there. A check of a file alone does not know what is
// stored.
func (r *reader) missing(n *Node) {
	if r.options.Outside {
		r.warn(atNode(n), "", "the call activity runs the diagram %q, which must be stored when a run begins", n.CalledProcess)
		return
	}
	r.refuse(atNode(n), "put the process into the same file, or store its diagram under the name "+n.CalledProcess, "the call activity runs the process %q, which the file does not have", n.CalledProcess)
}

// adopt adds the elements of a called file. Their ids begin with its name, so that they
// are not those of others.
func (r *reader) adopt(n *Node, d *Definitions) {
	if r.adopted[d] {
		return
	}
	r.adopted[d] = true
	for id, node := range d.elements {
		if other := r.elements[id]; other != nil && other != node {
			r.refuse(atNode(other), "give it another id", "the diagram %q, which is called, has an element with this id", n.CalledProcess)
			return
		}
		r.elements[id] = node
	}
	for _, p := range d.Processes {
		if !slices.Contains(r.Processes, p) {
			r.Processes = append(r.Processes, p)
		}
	}
	for _, w := range d.Warnings {
		r.warn(atNode(n), w.Hint, "in the diagram %q, %s", n.CalledProcess, w)
	}
}

// references are the attributes that name another element by its id.
var references = words("sourceRef targetRef default attachedToRef messageRef errorRef signalRef escalationRef operationRef processRef calledElement activityRef")

// prefix puts a prefix before the ids of a file, and where they are named.
func (e *element) prefix(prefix string) {
	ids := map[string]bool{}
	e.each(func(e *element) {
		if e.Space == modelNamespace {
			ids[idOf(e)] = true
		}
	})
	delete(ids, "")
	callable := map[string]bool{} // another element may have the name of another file
	for _, c := range e.children {
		callable[idOf(c)] = ids[idOf(c)]
	}
	e.each(func(e *element) {
		call := e.Space == zeebeNamespace && e.Local == "calledElement"
		if e.Space != modelNamespace && !call {
			return
		}
		for i := range e.attrs {
			a := &e.attrs[i]
			id, is := local(strings.TrimSpace(a.Value)), ids
			if call || a.Name.Local == "calledElement" {
				is = callable
			}
			if a.Name.Space == "" && is[id] && (references[a.Name.Local] || call && a.Name.Local == "processId" || !call && a.Name.Local == "id") {
				a.Value = prefix + id
			}
		}
		if id := local(e.content()); (e.Local == "flowNodeRef" || e.Local == "eventDefinitionRef") && ids[id] {
			e.text = prefix + id
		}
	})
}

// each calls f for an element and all in it.
func (e *element) each(f func(e *element)) {
	f(e)
	for _, c := range e.children {
		c.each(f)
	}
}
