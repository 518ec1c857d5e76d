package workflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// own is what a runner knows of the diagram of its options: the one that runs if a task
// gives none.
type own struct {
	mu      sync.Mutex
	checked []byte // the diagram for which problem is
	problem error  // why it cannot run
}

// Attach tells the runner where it runs: how stored diagrams are looked up (see
// [Options.Lookup]), and the agents that its tasks can go to. Call it before the runner is
// used.
func (r *Runner) Attach(lookup func(ctx context.Context, name, digest string) ([]byte, error), agents []string) {
	r.options.Lookup, r.attached = lookup, append([]string{}, agents...)
}

// Available returns why the diagram of the options cannot run, nil if it can or if there
// is none.
func (r *Runner) Available() error {
	if r.options.XML == nil && r.options.Name == "" {
		return nil
	}
	xml, err := r.ownXML(context.Background())
	if err != nil {
		return err
	}
	if xml, err = r.whole(context.Background(), xml); err != nil {
		return err
	}
	r.own.mu.Lock()
	defer r.own.mu.Unlock()
	if r.own.checked == nil || !bytes.Equal(r.own.checked, xml) {
		r.own.checked, r.own.problem = xml, r.check(xml)
	}
	return r.own.problem
}

// ownXML returns the diagram of the options.
func (r *Runner) ownXML(ctx context.Context) ([]byte, error) {
	switch {
	case r.options.XML != nil:
		return r.options.XML, nil
	case r.options.Name == "":
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the task has no diagram").WithHint("give its XML as bpmn, or the name of a stored workflow")
	}
	return r.stored(ctx, r.options.Name, "")
}

func (r *Runner) stored(ctx context.Context, name, digest string) ([]byte, error) {
	if r.options.Lookup == nil {
		return nil, tapedeck.Errorf(tapedeck.NotFound, "there is no stored workflow %.100q: this server stores none", name)
	}
	return r.options.Lookup(ctx, name, digest)
}

// whole returns a diagram together with the stored ones that it calls.
func (r *Runner) whole(ctx context.Context, xml []byte) ([]byte, error) {
	return bpmn.Embed(xml, func(name string) ([]byte, error) { return r.stored(ctx, name, "") })
}

// check returns why the diagram of the options cannot run, with those that it calls: something in it, an agent that
// does not exist, or a variable that is missing.
func (r *Runner) check(xml []byte) error {
	d, err := r.definitions.read(string(xml), r.options.Process)
	if err != nil {
		return err
	}
	err = d.CheckAgents(r.options.Agents, func(name string) error {
		if r.attached == nil || slices.Contains(r.attached, name) {
			return nil
		}
		return tapedeck.Errorf(tapedeck.Invalid, "there is no agent %.100q", name).WithHint("the agents are %s", strings.Join(r.attached, ", "))
	})
	if err != nil {
		return err
	}
	text := map[string]json.RawMessage{r.options.taskVariable(): json.RawMessage(`""`)} // each task has one
	_, err = r.firstVariables(context.Background(), d.Main.Start, text, "")
	return err
}

// taskVariable is the name of the variable that gets the text of a task.
func (o *Options) taskVariable() string { return cmp.Or(o.TaskVariable, "task") }

// variables returns the variables of a task, with those of the options that it does not
// set.
func (o *Options) variables(given map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(o.Variables)
	if out == nil {
		return given
	}
	maps.Copy(out, given)
	return out
}
