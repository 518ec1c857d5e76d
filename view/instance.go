package view

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// An Instance is an agent that takes part in a session: one that an
// instance.started has announced, one that events name as theirs, or a subagent.
// A thread that has none of these in it has one all the same, of an id that
// follows from the session and the name of the thread; see [InstanceID].
//
// A fork and a copy have instances of their own: each has another id there. The
// events that they share with their parent name the instance by a former id.
type Instance struct {
	ID        string          `json:"id"`
	FormerIDs []string        `json:"former_ids,omitempty"` // in the sessions that this one was forked or copied from, oldest first
	Name      string          `json:"name,omitempty"`       // of the agent
	Parent    string          `json:"parent,omitempty"`     // the instance that started it
	Thread    string          `json:"thread"`
	Subagent  string          `json:"subagent,omitempty"` // AG-UI's subagentRunId, of a subagent
	Implicit  bool            `json:"implicit,omitempty"` // nothing has announced it
	Main      bool            `json:"main,omitempty"`     // what names no instance in the thread is its
	Offset    int64           `json:"offset"`             // of the first event that knows of it
	StartedAt Time            `json:"started_at"`
	Runs      int64           `json:"runs"`   // how many it had; of a subagent, how often it was started
	Status    tapedeck.Status `json:"status"` // of the newest of them; idle if it had none

	threadID string // of the main instance of a thread: see [InstanceID]
}

// A Ref names an instance of a session.
type Ref struct{ Session, ID string }

// InThread returns an instance that stands for whoever speaks in a thread, but
// for subagents. "" is [tapedeck.MainThread].
func InThread(thread string) Instance {
	if thread == "" {
		thread = tapedeck.MainThread
	}
	return Instance{Thread: thread, Main: true}
}

// Has reports whether a message, a call or a run is of the instance.
func (i *Instance) Has(item *Item) bool {
	switch {
	case item.Subagent != "" || i.Subagent != "":
		return item.Subagent == i.Subagent && item.Thread == i.Thread
	case item.Instance != "" && i.ID != "":
		return item.Instance == i.ID || slices.Contains(i.FormerIDs, item.Instance)
	}
	return i.Main && item.Thread == i.Thread
}

// Instances are those of a session, in the order in which they came.
type Instances []Instance

// Find returns the instance of an id.
func (l Instances) Find(id string) (Instance, bool) {
	for _, i := range l {
		if i.ID == id {
			return i, true
		}
	}
	for _, i := range l {
		if slices.Contains(i.FormerIDs, id) || i.threadID == id {
			return i, true
		}
	}
	return Instance{}, false
}

// maxInstances is the most instances that are kept; later ones are passed over.
const maxInstances = 10_000

// An InstanceFold folds the events in force into [Instances]. Events come in the
// order of their offsets; one that was folded before is passed over. As JSON it
// is its state. The zero value is ready.
type InstanceFold struct {
	s struct {
		Next      int64             `json:"next"`
		Instances []Instance        `json:"instances"`
		Runs      map[string]string `json:"runs,omitempty"` // open: by invocation, the id of the instance
	}
	ready  bool
	byID   map[string]int // places in s.Instances
	main   map[string]int // by thread
	byTask map[string]int // subagents, by thread and subagentRunId
}

// Next returns the offset of the event that the fold waits for.
func (f *InstanceFold) Next() int64 { return f.s.Next }

// MarshalJSON encodes the state of the fold.
func (f *InstanceFold) MarshalJSON() ([]byte, error) { return json.Marshal(&f.s) }

// UnmarshalJSON replaces the state of the fold.
func (f *InstanceFold) UnmarshalJSON(b []byte) error {
	*f = InstanceFold{}
	return json.Unmarshal(b, &f.s)
}

// Instances returns those of what was folded of a session. They do not change
// when the fold goes on.
func (f *InstanceFold) Instances(session string) Instances {
	f.prepare()
	out := append(Instances{}, f.s.Instances...)
	for n := range out {
		i := &out[n]
		i.FormerIDs = slices.Clone(i.FormerIDs)
		if i.Main {
			i.threadID = InstanceID(session, i.Thread)
		}
		if f.isNameless(n) {
			i.ID = i.threadID
		}
		if p, ok := f.byID[i.Parent]; ok && f.isNameless(p) {
			i.Parent = InstanceID(session, f.s.Instances[p].Thread)
		}
	}
	return out
}

func (f *InstanceFold) prepare() {
	if f.ready {
		return
	}
	f.ready = true
	f.byID, f.main, f.byTask = map[string]int{}, map[string]int{}, map[string]int{}
	for n := range f.s.Instances {
		f.know(n)
	}
}

// know makes the instance at n known by its names.
func (f *InstanceFold) know(n int) {
	i := &f.s.Instances[n]
	f.byID[i.ID] = n
	for _, id := range i.FormerIDs {
		f.byID[id] = n
	}
	if i.Main {
		f.main[i.Thread] = n
	}
	if i.Subagent != "" {
		f.byTask[i.Thread+"/"+i.Subagent] = n
	}
}

// Apply folds one event.
func (f *InstanceFold) Apply(e *tapedeck.Event) {
	if e.Offset < f.s.Next {
		return
	}
	f.s.Next = e.Offset + 1
	f.prepare()
	if e.Type == tapedeck.SessionForked {
		f.forked(e)
	}
	if e.Channel == tapedeck.ChannelSession {
		return
	}
	if e.Type == tapedeck.InstanceStarted {
		f.announced(e)
		return
	}
	n, ok := f.of(e)
	if !ok {
		return
	}
	switch e.Type {
	case tapedeck.RunStarted:
		f.runStarted(e, n)
	case tapedeck.RunFinished, tapedeck.RunError:
		f.runEnded(e)
	case tapedeck.SubagentStarted:
		f.subagentStarted(e, n)
	case tapedeck.SubagentFinished, tapedeck.SubagentError:
		f.subagentEnded(e)
	}
}

// of returns the instance whose event e is. The first event of a thread makes an
// instance for it, and the first that names one gives that its id.
func (f *InstanceFold) of(e *tapedeck.Event) (int, bool) {
	if n, ok := f.byID[e.Instance]; ok && e.Instance != "" {
		return n, true
	}
	thread := e.ThreadName()
	n, ok := f.main[thread]
	switch {
	case ok && e.Instance == "":
		return n, true
	case ok && f.isNameless(n):
		f.rename(n, e.Instance)
		return n, true
	}
	i := Instance{ID: e.Instance, Thread: thread, Implicit: true, Main: !ok}
	if i.ID == "" {
		i.ID = nameless(thread)
	}
	return f.add(e, i)
}

// isNameless reports whether nothing has named the instance yet.
func (f *InstanceFold) isNameless(n int) bool {
	i := &f.s.Instances[n]
	return i.Implicit && i.ID == nameless(i.Thread)
}

func (f *InstanceFold) rename(n int, id string) {
	delete(f.byID, f.s.Instances[n].ID)
	for invocation, of := range f.s.Runs {
		if of == f.s.Instances[n].ID {
			f.s.Runs[invocation] = id
		}
	}
	for k := range f.s.Instances {
		if f.s.Instances[k].Parent == f.s.Instances[n].ID {
			f.s.Instances[k].Parent = id
		}
	}
	f.s.Instances[n].ID = id
	f.byID[id] = n
}

func (f *InstanceFold) add(e *tapedeck.Event, i Instance) (int, bool) {
	if _, taken := f.byID[i.ID]; taken || len(f.s.Instances) >= maxInstances {
		return 0, false
	}
	i.Offset, i.StartedAt, i.Status = e.Offset, Time{e.Time}, tapedeck.StatusIdle
	f.s.Instances = append(f.s.Instances, i)
	f.know(len(f.s.Instances) - 1)
	return len(f.s.Instances) - 1, true
}

// announced folds an instance.started.
func (f *InstanceFold) announced(e *tapedeck.Event) {
	var d struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Parent string `json:"parent"`
	}
	if !decode(e, &d) || d.ID == "" {
		return
	}
	thread := e.ThreadName()
	n, ok := f.byID[d.ID]
	main, has := f.main[thread]
	switch {
	case ok:
	case has && f.isNameless(main):
		f.rename(main, d.ID)
		n = main
	default:
		if n, ok = f.add(e, Instance{ID: d.ID, Thread: thread, Main: !has}); !ok {
			return
		}
	}
	i := &f.s.Instances[n]
	i.Implicit = false
	if d.Name != "" {
		i.Name = d.Name
	}
	if d.Parent != "" && d.Parent != d.ID {
		i.Parent = d.Parent
	}
}

func (f *InstanceFold) runStarted(e *tapedeck.Event, n int) {
	i := &f.s.Instances[n]
	var d struct {
		Metadata runMetadata `json:"metadata"`
	}
	_ = decode(e, &d)
	if i.Name == "" {
		i.Name = d.Metadata.Tapedeck.Agent
	}
	i.Runs++
	i.Status = tapedeck.StatusRunning
	if len(f.s.Runs) < maxInstances {
		put(&f.s.Runs, e.Invocation, i.ID)
	}
}

func (f *InstanceFold) runEnded(e *tapedeck.Event) {
	if n, ok := f.byID[f.s.Runs[e.Invocation]]; ok {
		f.s.Instances[n].Status = endStatus(e)
	}
	delete(f.s.Runs, e.Invocation)
}

// forked gives the instances of the parent the ids that they have in the fork, and
// ends what the parent had open: it is nobody's here.
func (f *InstanceFold) forked(e *tapedeck.Event) {
	f.copied(e)
	for n := range f.s.Instances {
		if i := &f.s.Instances[n]; i.Status == tapedeck.StatusRunning {
			i.Status = tapedeck.StatusInterrupted
		}
	}
	f.s.Runs = nil
}

func (f *InstanceFold) subagentStarted(e *tapedeck.Event, parent int) {
	var d struct {
		ID     string `json:"subagentRunId"`
		Name   string `json:"name"`
		Parent string `json:"parentSubagentRunId"`

		Metadata runMetadata `json:"metadata"`
	}
	if !decode(e, &d) || d.ID == "" || d.Metadata.Tapedeck.Thread != "" { // which is where its instance is
		return
	}
	thread := e.ThreadName()
	if above, ok := f.byTask[thread+"/"+d.Parent]; ok {
		parent = above
	}
	n, ok := f.byTask[thread+"/"+d.ID]
	if !ok {
		i := Instance{ID: d.ID, Thread: thread, Subagent: d.ID, Parent: f.s.Instances[parent].ID}
		if _, taken := f.byID[i.ID]; taken {
			i.ID = idOf("subagent " + thread + "/" + d.ID + " under " + i.Parent)
		}
		if n, ok = f.add(e, i); !ok {
			return
		}
	}
	i := &f.s.Instances[n]
	i.Runs++
	i.Status = tapedeck.StatusRunning
	if d.Name != "" {
		i.Name = d.Name
	}
}

func (f *InstanceFold) subagentEnded(e *tapedeck.Event) {
	var d struct {
		ID      string `json:"subagentRunId"`
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
	}
	if !decode(e, &d) {
		return
	}
	n, ok := f.byTask[e.ThreadName()+"/"+d.ID]
	if !ok {
		return
	}
	status := tapedeck.StatusComplete
	switch {
	case e.Type == tapedeck.SubagentError:
		status = tapedeck.StatusFailed
	case d.Outcome.Type == payload.OutcomeSuspended:
		status = tapedeck.StatusInterrupted
	}
	f.s.Instances[n].Status = status
}
