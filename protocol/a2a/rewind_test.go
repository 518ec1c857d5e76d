package a2a_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// rewindTo returns the parameters of a rewind as the screen of source 001 sends it: a
// message with an empty text.
func rewindTo(id, invocation string) string {
	return message03(id, "", fmt.Sprintf(`"metadata":{"kagent_rewind_before_invocation_id":%q}`, invocation))
}

// threeTurns runs three turns and returns their invocations.
func threeTurns(w *world) (ids []string) {
	w.Helper()
	for i, text := range []string{"say One", "say Two", "say Three"} {
		t := w.call03("message/send", message03(fmt.Sprintf("m%d", i), text, "")).task()
		ids = append(ids, t.History[len(t.History)-1].Metadata["kagent_invocation_id"].(string))
	}
	return ids
}

const firstTurn = "user: say One | agent: One"

// A rewind answers with one task that has the effective history, calls no agent, and
// deletes nothing. Afterwards the effective tasks are listed.
func TestRewind(t *testing.T) {
	for _, policy := range []a2a.Policy{a2a.PerTurn, a2a.PerSession} {
		for _, method := range []string{"message/stream", "message/send"} {
			t.Run(string(policy)+" "+method, func(t *testing.T) {
				inBubble(t, a2a.Options{Policy: policy}, func(w *world) { rewinds(w, policy, method) })
			})
		}
	}
}

func rewinds(w *world, policy a2a.Policy, method string) {
	ids := threeTurns(w)
	before := w.log()
	got := w.call03(method, rewindTo("r", ids[1])).task()
	if got.words() != firstTurn || got.Status.State != "completed" || got.ContextID != "c" {
		w.Errorf("got %s in state %s", got.words(), got.Status.State)
	}
	for _, m := range got.History {
		if m.Metadata["kagent_invocation_id"] != ids[0] || m.Metadata["adk_invocation_id"] != ids[0] || m.TaskID != got.ID {
			w.Errorf("the message %s has %v", m.ID, m)
		}
	}
	if after := w.log(); !slices.Equal(after, append(before, "session.rewound")) {
		w.Errorf("the log is %v", after)
	}
	if again := w.call03("tasks/get", fmt.Sprintf(`{"id":%q}`, got.ID)).task(); again.words() != firstTurn || again.Status.State != "completed" {
		w.Errorf("later the task is %s in state %s", again.words(), again.Status.State)
	}
	if list := w.list(`{"contextId":"c"}`); len(list) != 1 || list[0].words() != firstTurn {
		w.Errorf("listed are %v", list)
	}
	if policy == a2a.PerTurn {
		w.call03("tasks/get", fmt.Sprintf(`{"id":"c~%s"}`, ids[2])).fails(-32001, "there is no task")
	}
	next := w.call03("message/send", message03("m9", "say Four", "")).task()
	want := "user: say Four | agent: Four"
	if policy == a2a.PerSession {
		want = firstTurn + " | " + want
	}
	if next.words() != want {
		w.Errorf("the next turn is %s, want %s", next.words(), want)
	}
}

// A rewind is what the document says of it: without a messageId, a kind and parts. The task
// has a history also if nothing is left of it. In the metadata of the request the
// invocation is not read, and the message is not lost: the request is refused. An invocation
// that is empty counts as none.
func TestRewindAsTheDocumentSaysIt(t *testing.T) {
	inBubble(t, a2a.Options{Policy: a2a.PerSession}, func(w *world) {
		ids := threeTurns(w)
		meta := fmt.Sprintf(`"metadata":{"kagent_rewind_before_invocation_id":%q}`, ids[0])
		before := len(w.log())
		w.call03("message/stream", strings.TrimSuffix(message03("m4", "say Four", ""), "}")+","+meta+"}").fails(-32602, "in the metadata of the message")
		w.call03("message/stream", strings.Replace(`{"message":{"role":"user","contextId":"c",`+meta+`}}`, ids[0], "", 1)).fails(-32602, "no messageId")
		w.call03("message/send", `{"message":{"role":"user","contextId":"c","parts":[{"kind":"text","text":"say Four"}]}}`).fails(-32602, "no messageId")
		if after := len(w.log()); after != before {
			t.Errorf("%d events were appended", after-before)
		}
		w.call03("message/send", message03("m2", "say Three", strings.Replace(meta, ids[0], "", 1))).task()
		a := w.call03("message/stream", `{"message":{"role":"user","contextId":"c",`+meta+`}}`)
		if got := a.task(); got.ID != "c" || got.Status.State != "completed" || !strings.Contains(a.Body, `"history":[]`) {
			t.Errorf("got %s", a.Body)
		}
		if a := w.call03("message/send", strings.Replace(rewindTo("r", "inv_x"), `"contextId":"c"`, `"contextId":"none"`, 1)); a.task().Status.State != "failed" || strings.Contains(a.Body, `"history"`) {
			t.Errorf("got %s", a.Body)
		}
		w.call03("message/send", message03("m2", "say Three", "")).fails(-32004, "was sent before, and its run was reverted")
		next := w.call03("message/send", message03("m5", "say Five", `"taskId":"c"`)).task()
		if next.ID != "c" || next.words() != "user: say Five | agent: Five" {
			t.Errorf("got %s %s", next.ID, next.words())
		}
	})
}

// list returns the listed tasks.
func (w *world) list(params string) (out []*task) {
	w.Helper()
	a := w.call("ListTasks", params)
	for _, raw := range a.tasks() {
		out = append(out, a.taskIn(`{"result":`+raw+`}`))
	}
	return out
}

// A rewind that is refused is a failed task with a sentence, and appends nothing.
func TestRewindsThatAreRefused(t *testing.T) {
	for _, policy := range []a2a.Policy{a2a.PerTurn, a2a.PerSession} {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, a2a.Options{Policy: policy}, func(w *world) {
				ids := threeTurns(w)
				w.refuses("inv_unknown", `session c has no invocation "inv_unknown"`)
				rewound := w.call03("message/send", rewindTo("r", ids[1])).task()
				w.refuses(ids[2], "were reverted in the meantime")
				marker := marked(w)
				if policy == a2a.PerTurn && rewound.ID != "c~"+marker {
					t.Errorf("the task of the rewind is %s", rewound.ID)
				}
				w.refuses(marker, marker+" is a rewind, and a rewind cannot be rewound here; undo it with POST /api/v1/sessions/c/undo")
				if got := w.call("SendMessage", strings.Replace(rewindTo("r", ids[0]), `"contextId":"c"`, `"contextId":"none"`, 1)); !strings.Contains(got.Body, "role of the user") {
					t.Errorf("version 1.0 takes a message of version 0.3: %s", got.Body)
				}
				for _, method := range []string{"message/stream", "message/send"} {
					got := w.call03(method, strings.Replace(rewindTo("r", ids[0]), `"contextId":"c",`, ``, 1)).task()
					if got.Status.State != "failed" || got.ContextID == "" || got.Status.Message.Parts[0].Text != "a rewind needs the contextId of its session" {
						t.Errorf("got %+v", got)
					}
				}
			})
		})
	}
}

// marked returns the marker of the newest rewind.
func marked(w *world) (marker string) {
	w.Helper()
	for e, err := range tapedeck.Events(w.Context(), w.hub, "c", 0) {
		if err != nil {
			w.Fatal(err)
		}
		if j, ok := e.Jump(); ok {
			marker = j.Marker
		}
	}
	return marker
}

func (w *world) refuses(invocation, want string) {
	w.Helper()
	before := len(w.log())
	for _, method := range []string{"message/stream", "message/send"} {
		got := w.call03(method, rewindTo("r", invocation)).task()
		if got.Status.State != "failed" || got.Status.Message == nil || !strings.Contains(got.Status.Message.Parts[0].Text, want) {
			w.Errorf("%s: got %+v, want a failed task with %q", method, got.Status, want)
		}
		if got.History != nil { // a page would replace its messages, and show no error
			w.Errorf("the failed task has the history %s", got.words())
		}
	}
	if after := len(w.log()); after != before {
		w.Errorf("%d events were appended", after-before)
	}
}
