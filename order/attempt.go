package order

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// maxMarks is how many of the newest places of a run are remembered to which an
// attempt can go back; between this number and its double.
const maxMarks = 64

// A mark is a place in a run between two messages, calls or thoughts: an attempt can
// begin there. It covers the offsets from since to offset, between which the run has
// no AG-UI event. Marks are an immutable list, newest first.
type mark struct {
	since, offset int64
	open          []opened // steps and sub-agents
	known         *known
	asked         []string
	older         *mark
	n             int // length of the list
}

// A past says where the attempts of a run can begin. It is immutable.
type past struct {
	marks   *mark
	floor   int64 // no attempt begins below it: something there cannot be repeated
	last    int64 // the offset of the newest AG-UI event, or of the newest attempt
	input   int64 // the offset after the newest event that the agent got, or after the newest attempt
	step    int64 // the offset at which the step began that is being attempted
	attempt int64 // the number of the attempt; 0 and 1 mean the first
}

// holdsContent reports whether a message, a call or a thought is open.
func holdsContent(open []opened) bool {
	return slices.ContainsFunc(open, func(o opened) bool { return o.kind != step && o.kind != subagent })
}

// note returns r with the place before an event and what the event means for later
// attempts. next is the run after the event.
func (r *run) note(next *run, e *tapedeck.Event, at int64) *run {
	if next == nil || next == r && holdsContent(r.open) { // a delta, which needs no work
		return next
	}
	p := r.past
	if !holdsContent(r.open) {
		p.marks = p.marks.with(mark{since: p.last + 1, offset: at, open: r.open, known: r.known, asked: r.asked})
	}
	p.last = at
	switch e.Type {
	case tapedeck.ToolCallResult, tapedeck.StepStarted, tapedeck.StepFinished:
		p.input, p.step, p.attempt = at+1, at+1, 1
	case tapedeck.SubagentStarted:
		if tapedeck.MetaOf(json.RawMessage(jsonobj.Member(e.Data, "metadata"))).Thread != "" {
			p.floor = at + 1 // the events of its thread would stay active
		}
	}
	noted := *next
	noted.past = p
	return &noted
}

// with returns the list with one more mark. If it is too long, it drops the older half.
func (m *mark) with(one mark) *mark {
	if m != nil && m.n >= 2*maxMarks {
		m = m.newest(maxMarks)
	}
	one.older, one.n = m, 1
	if m != nil {
		one.n += m.n
	}
	return &one
}

func (m *mark) newest(n int) *mark {
	list := make([]*mark, 0, n)
	for ; m != nil && len(list) < n; m = m.older {
		list = append(list, m)
	}
	var short *mark
	for _, one := range slices.Backward(list) {
		short = short.with(*one)
	}
	return short
}

// hear notes a whole message. What a person says is not repeated.
func (v *Verifier) hear(e *tapedeck.Event, at int64) {
	thread := e.ThreadName()
	for i, r := range v.runs {
		if r.Thread != thread {
			continue
		}
		next := *r
		next.past.input, next.past.step, next.past.attempt = at+1, at+1, 1
		switch jsonobj.StringOf(jsonobj.Member(jsonobj.Member(e.Data, "message"), "role")) {
		case payload.RoleTool, payload.RoleAssistant, payload.RoleReasoning, payload.RoleActivity:
		default:
			next.past.floor = at + 1
		}
		v.replace(i, &next, e)
	}
}

// supersede adds an [tapedeck.AttemptSuperseded]: the run is again as it was at the
// beginning of the step.
func (v *Verifier) supersede(e *tapedeck.Event, at int64) error {
	if err := payload.CheckData(e); err != nil {
		return err
	}
	i, err := v.find(e)
	if err != nil {
		return err
	}
	var d payload.AttemptSuperseded
	if d, err = payload.DecodeAs[payload.AttemptSuperseded](*e); err != nil {
		return err
	}
	next, err := v.runs[i].back(d.FromOffset, at)
	if err != nil {
		return err
	}
	v.replace(i, next, e)
	return nil
}

// back returns the run as it was at an offset. at is the offset of the event that
// supersedes what came since.
func (r *run) back(from, at int64) (*run, error) {
	m := r.markAt(from)
	switch {
	case from < r.past.floor:
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the attempt cannot begin at offset %d: a message of a user, a sub-agent, or the beginning of run %s came after it", from, r.Invocation).
			WithHint("the first offset at which it can begin is %d", r.past.floor)
	case from >= at || m == nil:
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the attempt cannot begin at offset %d: a step of run %s begins where no message, call or thought is open", from, r.Invocation).
			WithHint("leave fromOffset out to repeat everything since the last input of the agent")
	}
	for _, id := range r.asked {
		if !slices.Contains(m.asked, id) {
			return nil, tapedeck.Errorf(tapedeck.Conflict, "the attempt has asked %s, which has no answer yet", jsonobj.Quote(id)).
				WithHint("append its permission.answered first")
		}
	}
	for _, o := range m.open {
		if r.find(o.kind, jsonobj.AppendJSON(nil, o.id), o.owner) == nil {
			return nil, tapedeck.Errorf(tapedeck.Conflict, "the attempt has ended %s %s, which began before it", kinds[o.kind].noun, jsonobj.Quote(o.id)).
				WithHint("begin the attempt after it, or before its beginning")
		}
	}
	next := *r
	next.open, next.known = m.open, m.known
	here := *m // a later attempt can begin at the same place
	here.offset = from
	next.past = past{
		marks: m.older.with(here), floor: r.past.floor, last: at,
		input: at + 1, step: min(r.past.step, from), attempt: r.nextAttempt(from),
	}
	return &next, nil
}

// nextAttempt returns the number of the attempt that replaces what came from an offset on.
func (r *run) nextAttempt(from int64) int64 {
	if from < r.past.step {
		return 2 // of a larger step
	}
	return max(r.past.attempt, 1) + 1
}

// markAt returns the mark that covers an offset.
func (r *run) markAt(offset int64) *mark {
	if offset > r.past.last && !holdsContent(r.open) {
		return &mark{since: r.past.last + 1, offset: offset, open: r.open, known: r.known, asked: r.asked, older: r.past.marks}
	}
	for m := r.past.marks; m != nil && m.offset >= offset; m = m.older {
		if m.since <= offset {
			return m
		}
	}
	return nil
}

// fillAttempt completes an [tapedeck.AttemptSuperseded]. Without fromOffset, it means
// everything since the newest input of the agent. It reports false if that is nothing.
func (v *Verifier) fillAttempt(e *tapedeck.Event) (bool, error) {
	r := v.runOn(e)
	if r == nil {
		if jsonobj.Member(e.Data, "fromOffset") == nil {
			_, err := v.find(e)
			return true, err
		}
		return true, nil // Add reports the missing run
	}
	e.Invocation = r.Invocation
	d := map[string]json.RawMessage{}
	from := r.past.input
	if len(e.Data) > 0 && !unpack(e.Data, &d) || d == nil {
		return true, nil // Add reports it
	}
	given := d["fromOffset"]
	if given != nil && !unpack(given, &from) {
		return true, nil
	}
	if given == nil && from > r.past.last && !holdsContent(r.open) {
		return false, nil
	}
	d["fromOffset"] = strconv.AppendInt(nil, from, 10)
	d["attempt"] = strconv.AppendInt(nil, r.nextAttempt(from), 10)
	delete(d, "previous")
	if v.lastJump > 0 {
		d["previous"] = strconv.AppendInt(nil, v.lastJump, 10)
	}
	e.Data = jsonobj.AppendMembers(nil, d)
	return true, nil
}

func unpack(raw []byte, into any) bool { return json.Unmarshal(raw, into) == nil }
