package order

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// maxAsked is how many questions of one run may be open.
const maxAsked = 1000

// ask opens a question ([tapedeck.PermissionRequested]). A question belongs to a run and
// ends with it, and its id is its own in the whole session while it is open: an
// answer names the id only, and must mean the question that people saw.
func (v *Verifier) ask(e *tapedeck.Event) error {
	if err := payload.CheckData(e); err != nil {
		return err
	}
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "id"))
	for _, r := range v.runs {
		if slices.Contains(r.asked, id) {
			return tapedeck.Errorf(tapedeck.Conflict, "the permission %s is open already, asked by run %s", jsonobj.Quote(id), r.Invocation).
				WithHint("ask with an id of its own, or wait for the answer")
		}
	}
	i, err := v.find(e)
	if err != nil {
		return err
	}
	next := *v.runs[i]
	if len(next.asked) >= maxAsked {
		return tapedeck.Errorf(tapedeck.TooLarge, "run %s has %d open questions", next.Invocation, len(next.asked)).WithHint("answer some of them")
	}
	next.asked = append(slices.Clip(next.asked), id)
	v.put(i, &next, e)
	return nil
}

// answer closes a question ([tapedeck.PermissionAnswered]). The answer to none changes
// nothing.
func (v *Verifier) answer(e *tapedeck.Event) {
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "id"))
	for i, r := range v.runs {
		if e.Invocation != "" && e.Invocation != r.Invocation || !slices.Contains(r.asked, id) {
			continue
		}
		next := *r
		next.asked = slices.DeleteFunc(slices.Clone(r.asked), func(other string) bool { return other == id })
		v.put(i, &next, e)
		return
	}
}
