package view

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A callTally is a tool call without an answer.
type callTally struct {
	Offset     int64  `json:"offset"`
	Begun      Time   `json:"begun"`
	Name       string `json:"name"` // the name in the summary
	Editor     bool   `json:"editor,omitempty"`
	Invocation string `json:"invocation,omitempty"`
	Args       []byte `json:"args,omitempty"`  // the arguments so far, until they are complete
	Edits      []edit `json:"edits,omitempty"` // edits of files, which are counted if the call succeeds
}

func callKey(e *tapedeck.Event, id string) string { return e.ThreadName() + "/" + id }

func (f *SummaryFold) toolStart(e *tapedeck.Event) {
	var d struct {
		ToolCallID string `json:"toolCallId"`
		Name       string `json:"toolCallName"`
	}
	if decode(e, &d) {
		f.call(e, d.ToolCallID, d.Name)
	}
}

// call counts a call, unless it is open already.
func (f *SummaryFold) call(e *tapedeck.Event, id, name string) {
	if id == "" {
		return
	}
	key := callKey(e, id)
	if k := f.s.Calls[key]; k != nil {
		f.dropArguments(k)
		if k.Invocation == e.Invocation {
			return
		}
	}
	if len(f.s.Calls) >= maxTallies {
		f.dropOldCalls()
	}
	k := &callTally{Offset: e.Offset, Begun: Time{e.Time}, Name: f.tool(name), Editor: isEditor(name), Invocation: e.Invocation}
	put(&f.s.Calls, key, k)
	f.s.Tools[k.Name].Count++
	f.countTool(e, e.Invocation, 1, 0)
}

// dropOldCalls drops the older half of the calls without an answer; a later
// answer does not count. Dropping half keeps the cost of finding the oldest
// calls low.
func (f *SummaryFold) dropOldCalls() {
	offsets := make([]int64, 0, len(f.s.Calls))
	for _, k := range f.s.Calls {
		offsets = append(offsets, k.Offset)
	}
	slices.Sort(offsets)
	middle := offsets[len(offsets)/2]
	f.dropCalls(func(k *callTally) bool { return k.Offset <= middle })
}

func (f *SummaryFold) dropCalls(drop func(*callTally) bool) {
	for key, k := range f.s.Calls {
		if drop(k) {
			f.dropArguments(k)
			delete(f.s.Calls, key)
		}
	}
}

// dropArguments drops the arguments and edits of a call.
func (f *SummaryFold) dropArguments(k *callTally) {
	f.s.ArgBytes -= k.size()
	k.Args, k.Edits = nil, nil
}

// size returns the approximate size of the arguments and edits, in bytes.
func (k *callTally) size() int {
	n := len(k.Args)
	for i := range k.Edits {
		n += len(k.Edits[i].Path) + 32
	}
	return n
}

// tool returns the name under which a tool is counted: "" if there are too many
// tools.
func (f *SummaryFold) tool(name string) string {
	name = label(name)
	if f.s.Tools[name] == nil && len(f.s.Tools) >= maxTallies {
		name = ""
	}
	if f.s.Tools[name] == nil {
		put(&f.s.Tools, name, &ToolUsage{Name: name})
	}
	return name
}

func (f *SummaryFold) toolArgs(e *tapedeck.Event) {
	id, delta, ok := callDelta.decode(e.Data)
	if !ok {
		return
	}
	k := f.s.Calls[callKey(e, string(id))]
	if k == nil || f.s.ArgBytes+len(delta) > maxArgBytes {
		return
	}
	k.Args = append(k.Args, delta...)
	f.s.ArgBytes += len(delta)
}

func (f *SummaryFold) toolEnd(e *tapedeck.Event) {
	var d struct {
		ToolCallID string `json:"toolCallId"`
	}
	if !decode(e, &d) {
		return
	}
	if k := f.s.Calls[callKey(e, d.ToolCallID)]; k != nil {
		f.setInput(e, d.ToolCallID, []byte(payload.Whole(string(k.Args))))
	}
}

// setInput reads the complete arguments of a call.
func (f *SummaryFold) setInput(e *tapedeck.Event, id string, args []byte) {
	k := f.s.Calls[callKey(e, id)]
	if k == nil {
		return
	}
	edits := editsOf(k.Editor, args)
	f.dropArguments(k)
	k.Edits = edits
	if f.s.ArgBytes += k.size(); f.s.ArgBytes > maxArgBytes {
		f.dropArguments(k)
	}
}

func (f *SummaryFold) toolResult(e *tapedeck.Event) {
	var a answer
	if !decode(e, &a) {
		return
	}
	f.countMessage(e, a.MessageID, payload.RoleTool)
	f.answered(e, &a)
}

func (f *SummaryFold) answered(e *tapedeck.Event, a *answer) {
	k := f.s.Calls[callKey(e, a.ToolCallID)]
	if k == nil {
		return
	}
	edits := k.Edits
	f.dropArguments(k)
	delete(f.s.Calls, callKey(e, a.ToolCallID))
	t := f.s.Tools[k.Name]
	took := e.Time.Sub(k.Begun.Time).Milliseconds()
	if reported, ok := a.duration(); ok {
		took = reported
	}
	t.DurationMS = plus(t.DurationMS, took)
	if _, failed := a.failure(); failed {
		t.Failed++
		f.countTool(e, k.Invocation, 0, 1)
		return
	}
	for _, d := range edits {
		f.modified(d.Path)
		f.s.Sum.LinesAdded = plus(f.s.Sum.LinesAdded, d.Added)
		f.s.Sum.LinesRemoved = plus(f.s.Sum.LinesRemoved, d.Removed)
	}
}

func (f *SummaryFold) modified(path string) {
	switch {
	case f.s.Files[path]:
	case len(f.s.Files) >= maxFiles || len(path) > maxFileName:
		f.s.Sum.FilesLeftOut++
	default:
		put(&f.s.Files, path, true)
	}
}
