package view

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Marker is a notable event of a session.
type Marker struct {
	Offset     int64  `json:"offset"`
	Kind       string `json:"kind"`
	Label      string `json:"label,omitempty"` // people read it; at most 80 runes, on one line
	At         Time   `json:"at"`
	PositionMS int64  `json:"position_ms"` // its position in the recording
	Thread     string `json:"thread"`
	Invocation string `json:"invocation,omitempty"`
	To         *int64 `json:"to_offset,omitempty"` // for a rewind, an overwrite, an attempt or a fork: the first offset that is reverted or left out; for a bookmark or feedback: the offset that it is about
}

// The kinds of a [Marker].
const (
	MarkUser       = "user"       // a user's message; the label is its beginning
	MarkTool       = "tool"       // a tool call; the label is its name
	MarkError      = "error"      // a run, sub-agent, tool or workflow failed; the label is the reason
	MarkCancel     = "cancel"     // a run was cancelled
	MarkPermission = "permission" // the agent asks for a permission; the label is the question
	MarkPlan       = "plan"       // the plan changed; the label counts the steps done: "2 of 5"
	MarkInstance   = "instance"   // an agent or a sub-agent starts; the label is its name
	MarkWorkflow   = "workflow"   // a token reaches an element of a process; the label is its name
	MarkRewind     = "rewind"
	MarkOverwrite  = "overwrite"
	MarkClear      = "clear"
	MarkAttempt    = "attempt" // a run repeats a step; the label is the reason
	MarkFork       = "fork"
	MarkErase      = "erase"
	MarkBookmark   = "bookmark"
	MarkFeedback   = "feedback" // the label is "up" or "down", and the comment
)

// maxMarkers is the largest number of markers of one kind in an [Index].
const maxMarkers = 2000

// A Gap is a silence of more than two seconds in the conversation, see [Silence].
type Gap struct {
	After      int64 `json:"after_offset"` // offset of the event of the conversation before it
	From       Time  `json:"from"`
	To         Time  `json:"to"`
	MS         int64 `json:"ms"`
	PositionMS int64 `json:"position_ms"`       // the position in the recording at which it begins
	Skipped    bool  `json:"skipped,omitempty"` // it takes no time in the recording
}

const (
	maxGaps  = 1000
	minGapMS = 2000
)

// addGap adds a gap that is later than all others. If there are too many, it
// drops the shortest gap; among equally short ones, the last.
func (x *Index) addGap(g Gap) {
	if len(x.Gaps) < maxGaps {
		x.Gaps = append(x.Gaps, g)
		x.cache.shortest = -1
		return
	}
	x.GapsLeftOut++
	if x.cache.shortest < 0 {
		x.cache.shortest = 0
		for i := range x.Gaps {
			if x.Gaps[i].MS <= x.Gaps[x.cache.shortest].MS {
				x.cache.shortest = i
			}
		}
	}
	if g.MS > x.Gaps[x.cache.shortest].MS {
		x.Gaps = append(slices.Delete(x.Gaps, x.cache.shortest, x.cache.shortest+1), g)
		x.cache.shortest = -1
	}
}

// addMarker adds a marker for e.
func (x *Index) addMarker(e *tapedeck.Event, kind, text string, to *int64) {
	increment(&x.Marked, kind)
	x.keepMarker(Marker{
		Offset: e.Offset, Kind: kind, Label: label(text), At: Time{e.Time}, PositionMS: x.DurationMS,
		Thread: e.ThreadName(), Invocation: e.Invocation, To: to,
	})
}

// keepMarker adds a marker, unless its kind was thinned and has a marker for
// the same range of offsets.
func (x *Index) keepMarker(m Marker) {
	if last, ok := x.cache.last[m.Kind]; ok && last>>x.Thinned[m.Kind] == m.Offset>>x.Thinned[m.Kind] {
		return
	}
	x.Markers = append(x.Markers, m)
	x.cache.kept[m.Kind]++
	x.cache.last[m.Kind] = m.Offset
	for x.cache.kept[m.Kind] > maxMarkers {
		x.thin(m.Kind, x.Thinned[m.Kind]+1)
	}
}

// thin keeps, of a kind, the first marker in each range of 2^level offsets,
// counted from 0. So the result does not depend on the pieces in which an index
// was built. One more level keeps at least half of the markers, wherever they
// are.
func (x *Index) thin(kind string, level uint) {
	put(&x.Thinned, kind, level)
	last := int64(-1)
	x.Markers = slices.DeleteFunc(x.Markers, func(m Marker) bool {
		if m.Kind != kind {
			return false
		}
		if last >= 0 && last>>level == m.Offset>>level {
			x.cache.kept[kind]--
			return true
		}
		last = m.Offset
		return false
	})
	if last >= 0 {
		x.cache.last[kind] = last
	}
}

func (x *Index) joinMarkers(next *Index) {
	for kind, level := range next.Thinned {
		if level > x.Thinned[kind] {
			x.thin(kind, level)
		}
	}
	for _, m := range next.Markers {
		x.keepMarker(m)
	}
	for kind, n := range next.Marked {
		if x.Marked == nil {
			x.Marked = map[string]int64{}
		}
		x.Marked[kind] += n
	}
}

// indexFolds maps event types to their folds. v is the entry of the event's
// invocation, nil if it has none.
var indexFolds = map[string]func(x *Index, e *tapedeck.Event, v *IndexedInvocation){
	tapedeck.RunStarted:          (*Index).runStarted,
	tapedeck.RunFinished:         (*Index).runEnded,
	tapedeck.RunError:            (*Index).runEnded,
	tapedeck.MessageAdded:        (*Index).messageAdded,
	tapedeck.ToolCallResult:      (*Index).toolResult,
	tapedeck.PlanUpdated:         (*Index).planUpdated,
	tapedeck.SessionForked:       (*Index).forked,
	tapedeck.SessionRewound:      (*Index).jumped,
	tapedeck.SessionCleared:      (*Index).jumped,
	tapedeck.SessionOverwritten:  (*Index).jumped,
	tapedeck.AttemptSuperseded:   (*Index).retried,
	tapedeck.FeedbackAdded:       (*Index).feedback,
	tapedeck.ToolCallStart:       labelled(MarkTool, "toolCallName"),
	tapedeck.SubagentStarted:     labelled(MarkInstance, "name"),
	tapedeck.SubagentError:       labelled(MarkError, "message"),
	tapedeck.InstanceStarted:     labelled(MarkInstance, "name", "id"),
	tapedeck.PermissionRequested: labelled(MarkPermission, "message"),
	tapedeck.WorkflowEntered:     labelled(MarkWorkflow, "name", "element"),
	tapedeck.WorkflowFailed:      labelled(MarkError, "message", "element"),
	tapedeck.BookmarkAdded:       labelled(MarkBookmark, "label"),
	tapedeck.SessionRedacted:     labelled(MarkErase, "reason"),
}

// labelled returns a fold that adds a marker. Its label is the first of the
// named members that is not empty.
func labelled(kind string, names ...string) func(*Index, *tapedeck.Event, *IndexedInvocation) {
	return func(x *Index, e *tapedeck.Event, _ *IndexedInvocation) {
		var m members
		_ = decode(e, &m)
		text := ""
		for i := 0; i < len(names) && text == ""; i++ {
			text, _ = m.text(names[i : i+1])
		}
		var to *int64
		if kind == MarkBookmark {
			to = m.offset("offset")
		}
		x.addMarker(e, kind, text, to)
	}
}

// offset returns a member that is an offset, nil if it is not.
func (m members) offset(name string) *int64 {
	var n *int64
	if json.Unmarshal(m[name], &n) != nil || n == nil || *n < 0 {
		return nil
	}
	return n
}

func (x *Index) runStarted(e *tapedeck.Event, v *IndexedInvocation) {
	x.Runs++
	if v == nil {
		return
	}
	v.Status, v.EndedAt = tapedeck.StatusRunning, nil
	var d struct {
		Input struct {
			Messages []wireMessage `json:"messages"`
		} `json:"input"`
	}
	if v.Title != "" || !decode(e, &d) {
		return
	}
	if n := len(d.Input.Messages); n > 0 && d.Input.Messages[n-1].Role == payload.RoleUser {
		text, _ := content(d.Input.Messages[n-1].Content)
		v.Title = label(text)
	}
}

func (x *Index) runEnded(e *tapedeck.Event, v *IndexedInvocation) {
	status, at := endStatus(e), Time{e.Time}
	if v != nil {
		v.Status, v.EndedAt = status, &at
	}
	switch {
	case payload.IsSubThread(e.Thread): // the parent run has a marker for it
	case e.Type == tapedeck.RunError:
		var m members
		_ = decode(e, &m)
		text, _ := m.text([]string{"message"})
		x.addMarker(e, MarkError, text, nil)
	case status == tapedeck.StatusCancelled:
		x.addMarker(e, MarkCancel, "", nil)
	}
}

func (x *Index) messageAdded(e *tapedeck.Event, v *IndexedInvocation) {
	var d struct {
		Message wireMessage `json:"message"`
	}
	if !decode(e, &d) || d.Message.Role != payload.RoleUser {
		return
	}
	text, _ := content(d.Message.Content)
	if !payload.IsSubThread(e.Thread) { // in a sub-agent's thread, the user's message is from an agent
		x.addMarker(e, MarkUser, text, nil)
	}
	if v != nil && v.Title == "" {
		v.Title = label(text)
	}
}

func (x *Index) toolResult(e *tapedeck.Event, _ *IndexedInvocation) {
	var a answer
	if !decode(e, &a) {
		return
	}
	if why, failed := a.failure(); failed {
		if why == "" {
			why, _ = content(a.Content)
		}
		x.addMarker(e, MarkError, why, nil)
	}
}

func (x *Index) planUpdated(e *tapedeck.Event, _ *IndexedInvocation) {
	var d struct {
		Entries []struct {
			Status string `json:"status"`
		} `json:"entries"`
	}
	if !decode(e, &d) {
		return
	}
	done := 0
	for i := range d.Entries {
		if d.Entries[i].Status == "completed" {
			done++
		}
	}
	x.addMarker(e, MarkPlan, strconv.Itoa(done)+" of "+strconv.Itoa(len(d.Entries)), nil)
}

func (x *Index) forked(e *tapedeck.Event, _ *IndexedInvocation) {
	at, left := Time{e.Time}, e.Offset
	x.interrupt(at)
	x.Forks = append(x.Forks, IndexedFork{Offset: e.Offset, At: at})
	x.addMarker(e, MarkFork, "", &left)
}

func (x *Index) jumped(e *tapedeck.Event, _ *IndexedInvocation) {
	j, _ := e.Jump()
	kind := MarkRewind
	switch e.Type {
	case tapedeck.SessionCleared:
		kind = MarkClear
	case tapedeck.SessionOverwritten:
		kind = MarkOverwrite
	}
	x.addMarker(e, kind, j.Thread, &j.To)
}

func (x *Index) retried(e *tapedeck.Event, _ *IndexedInvocation) {
	j, _ := e.Jump()
	var m members
	_ = decode(e, &m)
	reason, _ := m.text([]string{"reason"})
	x.addMarker(e, MarkAttempt, reason, &j.To)
}

func (x *Index) feedback(e *tapedeck.Event, _ *IndexedInvocation) {
	var m members
	_ = decode(e, &m)
	rating, _ := m.text([]string{"rating"})
	comment, _ := m.text([]string{"comment"})
	x.addMarker(e, MarkFeedback, rating+" "+comment, m.offset("offset"))
}
