package projection_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/view"
)

// workflow appends a run of a process that enters n elements, one after the other, and
// then waits at the last one.
func (d *deck) workflow(thread string, n int) {
	d.t.Helper()
	d.turn++
	run := fmt.Sprint("i", d.turn)
	d.append(
		say(thread, run, tapedeck.RunStarted, `{"threadId":"t","runId":%q}`, run),
		say(thread, run, tapedeck.WorkflowStarted, `{"process":"P%d","digest":"sha256:0","xml":"<definitions n='%d'/>","starts":["E0"],"variables":{"html":"<b>&"}}`, d.turn, d.turn),
	)
	for i := range n {
		flow := ""
		if i > 0 {
			flow = fmt.Sprintf(`"flows":["f%d"],`, i-1)
		}
		d.append(say(thread, run, tapedeck.WorkflowEntered, `{"element":"E%d","elementType":"userTask",%s"activation":"%d","variables":{"own":%d}}`, i%7, flow, i+1, i))
		if i == n-1 {
			d.append(say(thread, run, tapedeck.WorkflowWaiting, `{"element":"E%d","activation":"%d","for":"message","message":"m"}`, i%7, i+1))
			return
		}
		d.append(say(thread, run, tapedeck.WorkflowLeft, `{"element":"E%d","activation":"%d","flows":["f%d"],"variables":{"n":%d}}`, i%7, i+1, i, i))
	}
}

func (d *deck) checkWorkflow(p *projection.Projections, session string, at int64) {
	d.t.Helper()
	t, folds := view.NewTimeline(jumpsOf(d.t, d, session)), map[string]*view.WorkflowFold{}
	for _, thread := range []string{"", "main", "side"} {
		folds[thread] = view.NewWorkflowFold(thread)
	}
	for e, err := range tapedeck.Events(context.Background(), d, session, 0) {
		if err != nil {
			d.t.Fatal(err)
		}
		for _, f := range folds {
			if e.Offset < at && (e.Channel == tapedeck.ChannelSession || t.Has(e.Offset, e.ThreadName(), at)) {
				f.Apply(&e)
			}
		}
	}
	for thread, f := range folds {
		want := "null"
		if w, ok := f.Workflow(); ok {
			want = encode(d.t, w)
		}
		got, err := p.Workflow(context.Background(), session, thread, at)
		if err != nil {
			d.t.Fatal(err)
		}
		if diff := cmp.Diff(want, encode(d.t, got)); diff != "" {
			d.t.Fatalf("the workflow of thread %q of %s as of %d: %s", thread, session, at, diff)
		}
	}
}

// The workflow of a session is read from the newest checkpoint. How much is read does not
// depend on the length of the session.
func TestCheckpointsBoundAWorkflow(t *testing.T) {
	d := newDeck(t)
	d.workflow("", 3000)
	if err := projection.New(projection.Options{Store: d, Every: 500}).Advance(context.Background(), d.id); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{d.head, d.head - 1, 3001, 5499, 40} {
		c := &counting{Store: d.Store}
		p := projection.New(projection.Options{Store: c, Every: 500})
		w, err := p.Workflow(context.Background(), d.id, "", at)
		if err != nil || w == nil {
			t.Fatal(w, err)
		}
		if w.XML != "<definitions n='1'/>" || len(w.Elements) != 7 {
			t.Errorf("at %d: the definition is %q, %d elements", at, w.XML, len(w.Elements))
		}
		if c.records > 500+3 { // the checkpoint, the first event and the definition
			t.Errorf("at %d: %d records were read of %d", at, c.records, d.head)
		}
		d.checkWorkflow(p, d.id, at)
	}
}
