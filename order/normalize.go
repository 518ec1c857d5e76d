package order

import (
	"cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// Accept returns the events in the form that the log keeps, see
// [Verifier.Normalize], and adds them to v. If there is an error, it adds no
// event. To be able to undo it when the log refuses the events, call it on a
// clone.
func (v *Verifier) Accept(events []tapedeck.Event) ([]tapedeck.Event, error) {
	next := *v
	out := make([]tapedeck.Event, 0, len(events))
	for i := range events {
		n := len(out)
		var err error
		if out, err = next.normalize(out, events[i]); err != nil {
			return nil, tapedeck.AtIndex(err, i, len(events))
		}
		for ; n < len(out); n++ {
			if err := next.Add(&out[n]); err != nil {
				return nil, tapedeck.AtIndex(err, i, len(events))
			}
		}
	}
	*v = next
	return out, nil
}

// Normalize returns e in the form that the log keeps, based on the events that
// v has seen. It does not change v.
//
//   - An AG-UI event or a question without an invocation gets that of the open
//     run in its thread; a [tapedeck.RunStarted] gets its runId.
//   - Members that clients need are filled in if possible: runId, threadId, and
//     the role of reasoning.
//   - A null is dropped where absence means the same, and so is a member "type"
//     that repeats the event's type. A timestamp becomes an integer.
//   - An attempt gets the place where its step began, its number, and the jump before
//     it. An attempt that replaces nothing is dropped.
//   - Chunks become start, content and end. The retired THINKING events become
//     REASONING events.
//
// Everything else stays unchanged. So one event may become none or several.
func (v *Verifier) Normalize(e tapedeck.Event) ([]tapedeck.Event, error) { return v.normalize(nil, e) }

func (v *Verifier) normalize(out []tapedeck.Event, e tapedeck.Event) ([]tapedeck.Event, error) {
	if err := v.translate(&e); err != nil {
		return nil, err
	}
	if e.Type == tapedeck.PermissionRequested {
		if r := v.runOn(&e); r != nil {
			e.Invocation = r.Invocation
		}
		return append(out, e), nil
	}
	if e.Type == tapedeck.AttemptSuperseded {
		if means, err := v.fillAttempt(&e); !means || err != nil {
			return out, err
		}
		return append(out, e), nil
	}
	if rules[e.Type] == nil {
		return append(out, e), nil
	}
	data, err := payload.TidyData(e.Data, e.Type, e.Type)
	if err != nil {
		return nil, err
	}
	e.Data = data
	if e.Type == tapedeck.RunStarted {
		return append(out, fillStart(e)), nil
	}
	r := v.runOn(&e)
	if r == nil {
		stray := run{threadID: e.ThreadName()}
		stray.Invocation = cmp.Or(e.Invocation, "none")
		return append(out, stray.fill(e)), nil // fill it, so that Add reports the missing run and not a missing member
	}
	e.Invocation = r.Invocation
	if form, ok := chunkForms[e.Type]; ok {
		return r.expand(out, &e, form)
	}
	return append(r.endChunks(out, &e), r.fill(e)), nil
}

// runOn returns the run that e belongs to: that of its invocation or, without
// one, the open run of its thread.
func (v *Verifier) runOn(e *tapedeck.Event) *run {
	for _, r := range v.runs {
		if r.Thread == e.ThreadName() && (e.Invocation == "" || r.Invocation == e.Invocation) {
			return r
		}
	}
	return nil
}

// fillStart makes the invocation in the envelope and the runId in the data of a
// RUN_STARTED the same, and fills in its threadId.
func fillStart(e tapedeck.Event) tapedeck.Event {
	runID, threadID := jsonobj.Member(e.Data, "runId"), jsonobj.Member(e.Data, "threadId")
	if e.Invocation == "" {
		e.Invocation = jsonobj.StringOf(runID)
	}
	if runID == nil {
		e.Data = jsonobj.WithMember(e.Data, "runId", e.Invocation)
	}
	if threadID == nil {
		e.Data = jsonobj.WithMember(e.Data, "threadId", e.ThreadName())
	}
	return e
}

func (r *run) fill(e tapedeck.Event) tapedeck.Event {
	switch e.Type {
	case tapedeck.RunFinished:
		if jsonobj.Member(e.Data, "threadId") == nil {
			e.Data = jsonobj.WithMember(e.Data, "threadId", r.threadID)
		}
		if jsonobj.Member(e.Data, "runId") == nil {
			e.Data = jsonobj.WithMember(e.Data, "runId", r.Invocation)
		}
	case tapedeck.ReasoningMessageStart:
		if jsonobj.Member(e.Data, "role") == nil {
			e.Data = jsonobj.WithMember(e.Data, "role", payload.RoleReasoning)
		}
	}
	return e
}
