package view

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// An Instance is an agent that takes part in a session: one announced by an
// instance.started, one that events name in their envelope, or a sub-agent. A
// thread without any of these has an instance, too; its id follows from the
// session and the thread, see [InstanceID].
//
// In a fork or copy of a session, each instance gets a new id. The inherited
// events name the instance by a former id.
type Instance struct {
	ID        string          `json:"id"`
	FormerIDs []string        `json:"former_ids,omitempty"` // its ids in the sessions from which this one was forked or copied, oldest first
	Name      string          `json:"name,omitempty"`       // the name of the agent
	Parent    string          `json:"parent,omitempty"`     // id of the instance that started it
	Thread    string          `json:"thread"`
	Subagent  string          `json:"subagent,omitempty"` // AG-UI's subagentRunId of a sub-agent
	Implicit  bool            `json:"implicit,omitempty"` // no instance.started announced it
	Main      bool            `json:"main,omitempty"`     // it owns the events of the thread that name no instance
	Offset    int64           `json:"offset"`             // the offset of the first event that mentions it
	StartedAt Time            `json:"started_at"`
	Runs      int64           `json:"runs"`   // number of its runs; for a sub-agent, how often it was started
	Status    tapedeck.Status `json:"status"` // the status of its newest run; idle if it had none

	threadID string // the [InstanceID] of its thread; set for a main instance
}

// A Ref identifies an instance of a session.
type Ref struct{ Session, ID string }

// InThread returns an instance that stands for all speakers in a thread, except
// for sub-agents. "" is [tapedeck.MainThread].
func InThread(thread string) Instance {
	if thread == "" {
		thread = tapedeck.MainThread
	}
	return Instance{Thread: thread, Main: true}
}

// Has reports whether a message, a call or a run belongs to the instance.
func (i *Instance) Has(item *Item) bool {
	switch {
	case item.Subagent != "" || i.Subagent != "":
		return item.Subagent == i.Subagent && item.Thread == i.Thread
	case item.Instance != "" && i.ID != "":
		return item.Instance == i.ID || slices.Contains(i.FormerIDs, item.Instance)
	}
	return i.Main && item.Thread == i.Thread
}

// Instances are the instances of a session, in the order of their first
// mention.
type Instances []Instance

// Find returns the instance with an id. A former id and an [InstanceID] also
// match.
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

// MaxInstances is the largest number of instances that are kept; later ones are
// ignored.
const MaxInstances = 10_000

// An InstanceFold folds the active events into [Instances]. Events must arrive
// in the order of their offsets; an event that was folded before is ignored.
// Its JSON is its whole state. The zero value is ready to use.
type InstanceFold struct {
	s struct {
		Next      int64             `json:"next"`
		Instances []Instance        `json:"instances"`
		Runs      map[string]string `json:"runs,omitempty"` // open runs: invocation to instance id
	}
	ready  bool
	byID   map[string]int // indices into s.Instances
	main   map[string]int // by thread
	byTask map[string]int // sub-agents by thread and subagentRunId
}

// Next returns the offset after the last event that was folded.
func (f *InstanceFold) Next() int64 { return f.s.Next }

// MarshalJSON encodes the state of the fold.
func (f *InstanceFold) MarshalJSON() ([]byte, error) { return json.Marshal(&f.s) }

// UnmarshalJSON replaces the state of the fold.
func (f *InstanceFold) UnmarshalJSON(b []byte) error {
	*f = InstanceFold{}
	return json.Unmarshal(b, &f.s)
}

// Instances returns the instances that were folded so far, for the session of
// that id. Folding on does not change the result.
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
		f.index(n)
	}
}

// index makes the instance at n available by its ids.
func (f *InstanceFold) index(n int) {
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
	n, ok := f.instanceOf(e)
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

// instanceOf returns the index of the instance that e belongs to. The first
// event of a thread creates an instance. The first event that names an instance
// gives it that id.
func (f *InstanceFold) instanceOf(e *tapedeck.Event) (int, bool) {
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
	if name, ok := strings.CutPrefix(e.Actor, "agent:"); ok && e.Instance != "" {
		i.Name = name // the instance has it in a fork that has no run of it
	}
	if i.ID == "" {
		i.ID = nameless(thread)
	}
	return f.add(e, i)
}

// isNameless reports whether no event has named the instance yet.
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
	if _, taken := f.byID[i.ID]; taken || len(f.s.Instances) >= MaxInstances {
		return 0, false
	}
	i.Offset, i.StartedAt, i.Status = e.Offset, Time{e.Time}, tapedeck.StatusIdle
	f.s.Instances = append(f.s.Instances, i)
	f.index(len(f.s.Instances) - 1)
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
		Metadata json.RawMessage `json:"metadata"`
	}
	_ = decode(e, &d)
	if i.Name == "" {
		i.Name = tapedeck.MetaOf(d.Metadata).Agent
	}
	i.Runs++
	i.Status = tapedeck.StatusRunning
	if len(f.s.Runs) < MaxInstances {
		put(&f.s.Runs, e.Invocation, i.ID)
	}
}

func (f *InstanceFold) runEnded(e *tapedeck.Event) {
	if n, ok := f.byID[f.s.Runs[e.Invocation]]; ok {
		f.s.Instances[n].Status = endStatus(e)
	}
	delete(f.s.Runs, e.Invocation)
}

// forked gives the instances of the parent their ids in the fork. It also ends
// the runs that the parent had open, because they do not continue in the fork.
func (f *InstanceFold) forked(e *tapedeck.Event) {
	f.renameCopied(e)
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

		Metadata json.RawMessage `json:"metadata"`
	}
	if !decode(e, &d) || d.ID == "" || tapedeck.MetaOf(d.Metadata).Thread != "" { // a sub-agent with a thread has its instance there
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
			i.ID = idIn(i.Parent, "subagent "+thread+"/"+d.ID)
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
