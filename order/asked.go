package order

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// maxPending is the largest number of pending questions of a run.
const maxPending = 1000

// ask adds a pending question ([tapedeck.PermissionRequested]). A question
// belongs to a run and ends with it. While it is pending its id is unique in
// the session, because an answer has only the id and must mean the question
// that the user saw.
func (v *Verifier) ask(e *tapedeck.Event) error {
	if err := payload.CheckData(e); err != nil {
		return err
	}
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "id"))
	for _, r := range v.runs {
		if slices.Contains(r.asked, id) {
			return tapedeck.Errorf(tapedeck.Conflict, "the permission %s of run %s is already pending", jsonobj.Quote(id), r.Invocation).
				WithHint("use another id, or wait for the answer")
		}
	}
	i, err := v.find(e)
	if err != nil {
		return err
	}
	next := *v.runs[i]
	if len(next.asked) >= maxPending {
		return tapedeck.Errorf(tapedeck.TooLarge, "run %s has %d open questions", next.Invocation, len(next.asked)).WithHint("answer some of them")
	}
	next.asked = append(slices.Clip(next.asked), id)
	v.replace(i, &next, e)
	return nil
}

// answer removes a pending question ([tapedeck.PermissionAnswered]). An answer
// without a question changes nothing.
func (v *Verifier) answer(e *tapedeck.Event) {
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "id"))
	for i, r := range v.runs {
		if e.Invocation != "" && e.Invocation != r.Invocation || !slices.Contains(r.asked, id) {
			continue
		}
		next := *r
		next.asked = slices.DeleteFunc(slices.Clone(r.asked), func(other string) bool { return other == id })
		v.replace(i, &next, e)
		return
	}
}
