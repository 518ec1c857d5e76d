package bpmn

import "fmt"

// An inliner puts the event definitions of a file into the events that refer to them
// (BPMN 2.0, 10.5.1), so that a trigger is read in the same way wherever it is written.
type inliner struct {
	definitions map[string]*element // by id
	sizes       map[string]size
	total       size
}

// inline changes the tree of a file. A reference to nothing stays, and is refused where its
// event is read. What is put into events counts as if it were written there: a large
// definition with many references would otherwise be read again and again.
func inline(root *element) *Problem {
	in := inliner{definitions: map[string]*element{}, sizes: map[string]size{}}
	for _, e := range root.children {
		s := e.size()
		in.total.add(s)
		if isTrigger(e) && idOf(e) != "" {
			in.definitions[idOf(e)], in.sizes[idOf(e)] = e, s
		}
	}
	for _, e := range root.children {
		if e.Space == modelNamespace && e.Local == "process" && len(in.definitions) > 0 {
			in.walk(e)
		}
	}
	if !in.total.fits() {
		return &Problem{
			Line: root.line, Message: fmt.Sprintf("the file has more than %d elements or %d MiB, if each event has the event definitions to which it refers", maxElements, MaxFile>>20),
			Hint: "let fewer events refer to large event definitions",
		}
	}
	return nil
}

// walk does not look into what it has put into an event: a definition that has a reference to
// itself in it is wrong, but must not become a circle.
func (in *inliner) walk(e *element) {
	for i, c := range e.children {
		id := local(c.content())
		if c.Space != modelNamespace || c.Local != "eventDefinitionRef" || in.definitions[id] == nil {
			in.walk(c)
			continue
		}
		if in.total.add(in.sizes[id]); in.total.fits() {
			e.children[i] = in.definitions[id]
		}
	}
}

// isTrigger reports whether an element is an event definition.
func isTrigger(e *element) bool {
	_, known := triggers[e.Local]
	_, unsupported := unsupportedTriggers[e.Local]
	return e.Space == modelNamespace && (known || unsupported)
}

// A size is how large an element is, with all in it.
type size struct{ elements, bytes int }

func (s *size) add(more size) { s.elements, s.bytes = s.elements+more.elements, s.bytes+more.bytes }

func (s *size) fits() bool { return s.elements <= maxElements && s.bytes <= MaxFile }

func (e *element) size() (s size) {
	e.each(func(e *element) {
		s.add(size{1, len(e.Local) + len(e.text)})
		for _, a := range e.attrs {
			s.bytes += len(a.Name.Local) + len(a.Value)
		}
	})
	return s
}
