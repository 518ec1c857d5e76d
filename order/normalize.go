package order

import (
	"cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// Accept returns the events as the log keeps them, see [Verifier.Normalize], and
// adds them to v: all of them or, with an error, none. To undo it when the log
// cannot take them, work on a clone.
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

// Normalize returns e as the log keeps it, given what v has seen; it adds
// nothing to v. An AG-UI event or a question to people of no invocation belongs to the run that is open
// on its thread, a [tapedeck.RunStarted] to that of its runId. Members that a client must
// find are filled in where they can be (runId, threadId, the role of reasoning),
// null is dropped where absence means the same, a member type that repeats the
// type is dropped, and a timestamp becomes an integer. Chunks become start,
// content and end; the retired THINKING events become those of reasoning.
// Everything else stays as it is. So one event may become none or several.
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
	if rules[e.Type] == nil {
		return append(out, e), nil
	}
	data, err := payload.TidyData(e.Data, e.Type, e.Type)
	if err != nil {
		return nil, err
	}
	e.Data = data
	if e.Type == tapedeck.RunStarted {
		return append(out, starting(e)), nil
	}
	r := v.runOn(&e)
	if r == nil {
		stray := run{threadID: e.ThreadName()}
		stray.Invocation = cmp.Or(e.Invocation, "none")
		return append(out, stray.fill(e)), nil // whole, so that Add says why it belongs nowhere, not what it lacks
	}
	e.Invocation = r.Invocation
	if form, ok := chunkForms[e.Type]; ok {
		return r.expand(out, &e, form)
	}
	return append(r.endChunks(out, &e), r.fill(e)), nil
}

// runOn returns the run to which e belongs or, if it does not say, the one that
// is open on its thread.
func (v *Verifier) runOn(e *tapedeck.Event) *run {
	for _, r := range v.runs {
		if r.Thread == e.ThreadName() && (e.Invocation == "" || r.Invocation == e.Invocation) {
			return r
		}
	}
	return nil
}

// starting fills in what a RUN_STARTED says in its envelope or in its data.
func starting(e tapedeck.Event) tapedeck.Event {
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
