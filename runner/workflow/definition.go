package workflow

import (
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck/internal/lru"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// maxDefinitions is how many diagrams a runner keeps in memory beside those of its runs.
const maxDefinitions = 256

// definitions has the diagrams that were read, by digest and process. A diagram that many runs
// share is in memory once.
type definitions struct {
	mu    sync.Mutex
	byKey lru.Map[string, *diagram]
}

// A diagram is a definition with what a walk needs to know of it.
type diagram struct {
	*bpmn.Definitions

	mu    sync.Mutex
	reach map[string]map[string]bool // by joining gateway: the elements from which a token can reach it
	flows map[string]*bpmn.Flow      // by id
}

// flow returns a sequence flow, nil if there is none with this id.
func (d *diagram) flow(id string) *bpmn.Flow { return d.flows[id] }

// flowsIn adds the flows of a scope and of those in it.
func flowsIn(s *bpmn.Scope, to map[string]*bpmn.Flow) {
	for _, f := range s.Flows {
		to[f.ID] = f
	}
	for _, n := range s.Nodes {
		if n.Scope != nil {
			flowsIn(n.Scope, to)
		}
	}
}

// find returns a diagram that was read, nil if it is not in memory.
func (d *definitions) find(digest, process string) *diagram {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, _ := d.byKey.Get(keyOf(digest, process))
	return known
}

// read reads a diagram, or returns the one that was read before. The process is "" for the
// only one.
func (d *definitions) read(xml, process string) (*diagram, error) {
	defs, err := bpmn.Read(strings.NewReader(xml), bpmn.Options{Process: process})
	if err != nil {
		return nil, err
	}
	key := keyOf(digestOf(defs), defs.Main.ID)
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.byKey.Get(key); ok {
		return known, nil
	}
	made := &diagram{Definitions: defs, reach: map[string]map[string]bool{}, flows: map[string]*bpmn.Flow{}}
	for _, p := range defs.Processes {
		flowsIn(&p.Scope, made.flows)
	}
	d.byKey.Put(key, made)
	d.byKey.Trim(maxDefinitions, nil)
	return made, nil
}

// reaches reports whether a token at an element can reach a gateway. Tokens that pass
// through the gateway itself do not count.
func (d *diagram) reaches(element string, gateway *bpmn.Node) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := d.reach[gateway.ID]
	if from == nil {
		from = reachable(gateway)
		d.reach[gateway.ID] = from
	}
	return from[element]
}

// reachable returns the elements from which a token can reach a gateway, also by a
// boundary event or a link.
func reachable(gateway *bpmn.Node) map[string]bool {
	from, queue := map[string]bool{}, []*bpmn.Node{}
	add := func(n *bpmn.Node) {
		if n != nil && n != gateway && !from[n.ID] {
			from[n.ID] = true
			queue = append(queue, n)
		}
	}
	links := map[*bpmn.Node][]*bpmn.Node{}
	for _, n := range siblings(gateway) {
		if n.LinkTarget != nil {
			links[n.LinkTarget] = append(links[n.LinkTarget], n)
		}
	}
	for _, f := range gateway.In {
		add(f.From)
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, f := range n.In {
			add(f.From)
		}
		for _, thrower := range links[n] {
			add(thrower)
		}
		add(n.AttachedTo)
	}
	return from
}

// siblings returns the elements of the scope of an element.
func siblings(n *bpmn.Node) []*bpmn.Node {
	if n.Parent != nil {
		return n.Parent.Scope.Nodes
	}
	return n.Process.Nodes
}
