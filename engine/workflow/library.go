// Package workflow keeps diagrams of workflows under names, says what is wrong with a
// diagram and what a run of it needs, and starts workflows.
package workflow

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/view"
)

// Limits of a library.
const (
	MaxNames    = 1000 // names of workflows
	MaxVersions = 100  // versions of a name; the oldest ones beyond it are removed
)

// A Store keeps the diagrams.
type Store interface {
	List(ctx context.Context) ([]store.Workflow, error)
	Versions(ctx context.Context, name string) ([]store.Workflow, error)
	Get(ctx context.Context, name, digest string) (store.Workflow, []byte, error)
	Put(ctx context.Context, w store.Workflow, diagram []byte, keep int) error
	Delete(ctx context.Context, name string) error
}

// An Engine runs agents.
type Engine interface {
	Agents() []tapedeck.Agent
	Start(ctx context.Context, t api.Task) (api.Started, error)
}

// Options of a library. Store and Engine are required.
type Options struct {
	Store  Store
	Engine Engine
	Agent  string // the name of the agent that walks workflows; "" for [DefaultAgent]
	Now    func() time.Time
}

// DefaultAgent is the name of the agent that walks workflows.
const DefaultAgent = "workflow"

// A Library keeps diagrams and starts them. Its methods may be called by several
// goroutines.
type Library struct{ Options }

// New returns a library.
func New(o Options) *Library {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Agent = cmp.Or(o.Agent, DefaultAgent)
	return &Library{o}
}

// List returns the current version of every name, by the names.
func (l *Library) List(ctx context.Context) ([]api.DiagramVersion, error) {
	all, err := l.Store.List(ctx)
	return versionsOf(all), err
}

func versionsOf(list []store.Workflow) []api.DiagramVersion {
	out := make([]api.DiagramVersion, len(list))
	for i, w := range list {
		out[i] = api.DiagramVersion{Name: w.Name, Digest: w.Digest, Title: w.Title, Added: view.Time{Time: w.Added}, Size: w.Size}
	}
	return out
}

// Get returns a stored workflow with its diagram. The version is a digest or the
// beginning of one, or "" for the current version.
func (l *Library) Get(ctx context.Context, name, version string) (api.Diagram, error) {
	w, diagram, err := l.stored(ctx, name, version)
	if err != nil {
		return api.Diagram{}, err
	}
	versions, err := l.Store.Versions(ctx, name)
	if err != nil {
		return api.Diagram{}, err
	}
	// A later version of the program may refuse a diagram that this one has accepted. Its
	// text must still be readable.
	out := api.Diagram{Digest: w.Digest, Title: w.Title, Tasks: []api.DiagramTask{}}
	if read, several, err := l.readStored(ctx, diagram); err == nil {
		out = l.describeAll(read, several)
	} else if out.Unmet = problemsOf(err); out.Unmet == nil {
		return out, err
	}
	out.Name, out.Versions, out.BPMN = name, versionsOf(versions), string(diagram)
	return out, nil
}

// Put stores a diagram as the current version of a name. A diagram that cannot run is
// [tapedeck.Invalid], with all its problems.
func (l *Library) Put(ctx context.Context, n api.NewWorkflow) (api.Diagram, error) {
	if err := checkName(n.Name); err != nil {
		return api.Diagram{}, err
	}
	diagram := bpmn.UTF8([]byte(n.BPMN))
	d, several, err := l.readStored(ctx, diagram)
	if err != nil {
		return api.Diagram{}, err
	}
	if err := l.checkSpace(ctx, n.Name); err != nil {
		return api.Diagram{}, err
	}
	out := l.describeAll(d, several)
	w := store.Workflow{Name: n.Name, Digest: out.Digest, Title: out.Title, Added: l.Now()}
	if err := l.Store.Put(ctx, w, diagram, MaxVersions); err != nil {
		return api.Diagram{}, err
	}
	versions, err := l.Store.Versions(ctx, n.Name)
	out.Name, out.Versions = n.Name, versionsOf(versions)
	return out, err
}

// names are what a workflow may be called: it is a part of a path, and people type it.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// reserved are paths of the HTTP API beside the names.
var reserved = map[string]bool{"run": true, "check": true}

func checkName(name string) error {
	const hint = "use 1 to 128 letters, digits and - _ . beginning with a letter or a digit"
	switch {
	case !names.MatchString(name):
		return tapedeck.Errorf(tapedeck.Invalid, "a workflow cannot have the name %.140q", name).WithHint(hint)
	case reserved[name]:
		return tapedeck.Errorf(tapedeck.Invalid, "a workflow cannot have the name %q, which the HTTP API uses itself", name).WithHint("choose another name")
	}
	return nil
}

// checkSpace refuses a new name if there are too many. Of two at once that are one too many,
// both may be accepted.
func (l *Library) checkSpace(ctx context.Context, name string) error {
	all, err := l.Store.List(ctx)
	if err != nil || len(all) < MaxNames {
		return err
	}
	for _, w := range all {
		if w.Name == name {
			return nil
		}
	}
	return tapedeck.Errorf(tapedeck.TooLarge, "there are %d workflows already, which is the limit", len(all)).WithHint("delete one that nobody needs")
}

// Delete removes a name with all its versions. Runs continue, because each has its diagram.
func (l *Library) Delete(ctx context.Context, name string) error {
	return l.known(ctx, l.Store.Delete(ctx, name), name, "")
}

// stored returns a stored version with its diagram.
func (l *Library) stored(ctx context.Context, name, version string) (store.Workflow, []byte, error) {
	if version != "" && !strings.HasPrefix(version, digestPrefix) {
		version = digestPrefix + version
	}
	version, err := l.wholeDigest(ctx, name, version)
	if err != nil {
		return store.Workflow{}, nil, err
	}
	w, diagram, err := l.Store.Get(ctx, name, version)
	return w, diagram, l.known(ctx, err, name, version)
}

// wholeDigest returns the digest of the version that begins like this one: lists show only
// the beginnings of digests. If no version does, it returns what it got.
func (l *Library) wholeDigest(ctx context.Context, name, version string) (string, error) {
	if len(version) <= len(digestPrefix) || len(version) >= len(digestPrefix)+64 {
		return version, nil
	}
	versions, err := l.Store.Versions(ctx, name)
	if err != nil {
		return version, nil //nolint:nilerr // to get it fails with the same error, and says what there is
	}
	var found []string
	for _, v := range versions {
		if strings.HasPrefix(v.Digest, version) {
			found = append(found, v.Digest)
		}
	}
	switch len(found) {
	case 0:
		return version, nil
	case 1:
		return found[0], nil
	}
	return "", tapedeck.Errorf(tapedeck.Invalid, "%d versions of %s begin with %s", len(found), name, version).
		WithHint("give more of the digest: %s", strings.Join(found[:min(len(found), maxNamed)], ", "))
}

// maxNamed is how many names or versions a hint lists.
const maxNamed = 20

// known adds to the error for an unknown name or version what there is.
func (l *Library) known(ctx context.Context, err error, name, version string) error {
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != tapedeck.NotFound {
		return err
	}
	var there []string
	what := "workflows"
	if versions, err := l.Store.Versions(ctx, name); version != "" && err == nil && len(versions) > 0 {
		what = "versions"
		for _, v := range versions {
			there = append(there, v.Digest)
		}
	} else if all, err := l.Store.List(ctx); err == nil {
		for _, w := range all {
			there = append(there, w.Name)
		}
	}
	if len(there) == 0 {
		return e.WithHint("no workflow is stored yet")
	}
	more := ""
	if n := len(there) - maxNamed; n > 0 {
		more = ", …"
	}
	return e.WithHint("the %s are %s%s", what, strings.Join(there[:min(len(there), maxNamed)], ", "), more)
}

// digestPrefix begins the digests of diagrams, as in a workflow.started.
const digestPrefix = "sha256:"

// readStored reads a diagram that is kept. If a run of it must name one of several
// processes, it returns one definition for each that can run.
func (l *Library) readStored(ctx context.Context, diagram []byte) (list []*bpmn.Definitions, several bool, err error) {
	d, _, err := l.read(ctx, diagram, "")
	var bad *bpmn.Error
	if !errors.As(err, &bad) || bad.Processes == nil {
		return []*bpmn.Definitions{d}, false, err
	}
	for i, id := range bad.Processes {
		d, _, err2 := l.read(ctx, diagram, id)
		if err2 == nil {
			list = append(list, d)
		} else if i == 0 {
			err = err2
		}
	}
	if len(list) == 0 {
		return nil, true, err
	}
	return list, true, nil
}

// read reads a diagram together with the stored ones that it calls, and returns the text of
// all. The digest is of the diagram alone.
func (l *Library) read(ctx context.Context, diagram []byte, process string) (*bpmn.Definitions, []byte, error) {
	diagram = bpmn.UTF8(diagram)
	whole := diagram
	if len(diagram) <= api.MaxDiagram {
		var err error
		whole, err = bpmn.Embed(diagram, func(name string) ([]byte, error) {
			_, called, err := l.Store.Get(ctx, name, "")
			return called, err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	d, err := readDiagram(whole, process)
	if err == nil {
		d.Digest = bpmn.DigestOf(diagram)
	}
	return d, whole, err
}

// readDiagram reads a diagram, with the process that runs, or "" for the only one. All its
// problems are in the error.
func readDiagram(diagram []byte, process string) (*bpmn.Definitions, error) {
	text := strings.TrimSpace(string(diagram[:min(len(diagram), 64)]))
	switch {
	case len(diagram) > api.MaxDiagram:
		return nil, tapedeck.Errorf(tapedeck.TooLarge, "the diagram is larger than %d MiB", api.MaxDiagram>>20)
	case text == "":
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the diagram is empty").WithHint("give the text of a .bpmn file, BPMN 2.0 as XML")
	case text[0] == '{' || text[0] == '[':
		return nil, tapedeck.Errorf(tapedeck.Invalid, "this is JSON, not a diagram").WithHint("give the text of a .bpmn file, BPMN 2.0 as XML")
	}
	d, err := bpmn.Read(strings.NewReader(string(diagram)), bpmn.Options{Process: process})
	var bad *bpmn.Error
	if !errors.As(err, &bad) {
		return d, err
	}
	out := &tapedeck.Error{Kind: tapedeck.KindOf(err), Message: bad.Error(), Problems: problemList(bad.Problems)}
	out.Hint = cmp.Or(bad.Problems[0].Hint, "mend the diagram; nothing was started or stored")
	return nil, out.Because(bad)
}

func problemList(list []bpmn.Problem) []tapedeck.Problem {
	out := make([]tapedeck.Problem, len(list))
	for i, p := range list {
		out[i] = tapedeck.Problem{Line: p.Line, Element: p.Element, Name: p.Name, Message: p.Message, Hint: p.Hint}
	}
	return out
}

// problemsOf returns the problems in an error, nil if it has none.
func problemsOf(err error) []tapedeck.Problem {
	var e *tapedeck.Error
	if errors.As(err, &e) {
		return e.Problems
	}
	return nil
}
