package ws

import (
	"encoding/json"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// TestWaitingTasks: the id of an element is that of each of its tasks that wait, and the id of
// a question that of one of them.
func TestWaitingTasks(t *testing.T) {
	var w view.Workflow
	err := json.Unmarshal([]byte(`{"activations":[
		{"id":"1","element":"U","waits":[{"element":"U","permission":"per_1"}]},
		{"id":"2","element":"U","waits":[{"element":"U","permission":"per_2"}]},
		{"id":"3","element":"V","ended_at":"2000-01-01T00:00:00Z","waits":[{"element":"V","permission":"per_3"}]}]}`), &w)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]struct {
		tasks int
		known bool
	}{"U": {2, true}, "per_2": {1, true}, "V": {0, true}, "per_3": {0, true}, "W": {0, false}} {
		if tasks, known := waitingTasks(&w, id); len(tasks) != want.tasks || known != want.known || want.tasks == 1 && tasks[0].id != id {
			t.Errorf("%s: %v, %v", id, tasks, known)
		}
	}
}

// TestDecisions: the decision of a page is the value that the form of the task has for it, and
// what the form cannot say is refused.
func TestDecisions(t *testing.T) {
	submit := []tapedeck.PermissionOption{{ID: "submit", Kind: "allow_once"}}
	both := []tapedeck.PermissionOption{{ID: "yes", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}}
	enum := []tapedeck.FormField{{ID: "decision", Type: "enum", Options: []tapedeck.FormOption{{Value: "Approve it"}, {Value: "Reject it"}, {Value: "later"}}}}
	yesNo := []tapedeck.FormField{{ID: "t_approved", Type: "boolean"}, {ID: "t_comments", Type: "text"}, {ID: "n", Type: "integer"}}
	for _, c := range []struct {
		answer  string
		form    []tapedeck.FormField
		options []tapedeck.PermissionOption
		want    string // "" for an error
	}{
		{`{"decision":"approved"}`, nil, submit, `submit {}`},
		{`{"decision":"rejected"}`, nil, submit, ``},
		{`{"decision":"rejected"}`, nil, both, `no {}`},
		{`{"decision":"approved"}`, nil, both, `yes {}`},
		{`{"decision":"no"}`, nil, both, `no {}`},
		{`{"decision":"maybe"}`, nil, both, ``},
		{`{}`, nil, submit, ``},
		{`{"decision":"rejected","comments":"too \"dear\""}`, yesNo, submit, `submit {"t_approved":false,"t_comments":"too \"dear\""}`},
		{`{"decision":"approved","input":{"n":7}}`, yesNo, submit, `submit {"n":7,"t_approved":true}`},
		{`{"input":{"n":7}}`, yesNo, submit, `submit {"n":7}`},
		{`{"decision":"maybe"}`, yesNo, submit, ``},
		{`{"decision":"approved","input":{"nope":2}}`, yesNo, submit, ``},
		{`{"decision":"approved","input":{"nope":2}}`, nil, submit, ``},
		{`{"decision":"approved"}`, enum, submit, `submit {"decision":"Approve it"}`},
		{`{"decision":"rejected"}`, enum, submit, `submit {"decision":"Reject it"}`},
		{`{"decision":"later"}`, enum, submit, `submit {"decision":"later"}`},
	} {
		var a taskAnswer
		if err := json.Unmarshal([]byte(c.answer), &a); err != nil {
			t.Fatal(err)
		}
		got, err := a.answer("t", &tapedeck.Question{ID: "per_1", Form: c.form, Options: c.options})
		input, _ := json.Marshal(got.Input)
		switch shown := got.Option + " " + string(input); {
		case err != nil && c.want != "", err == nil && shown != c.want:
			t.Errorf("%s: %s, %v, want %s", c.answer, shown, err, c.want)
		}
	}
}
