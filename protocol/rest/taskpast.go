package rest

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A past finds out what runs have said before the offset at which a client goes
// on. It looks back when an event of such a run comes, and not further than to
// the beginning of that run; and each time at least as far again as before, so
// that all looking back costs no more than twice the way.
type past struct {
	log     reader
	session string
	at      int64 // where the client goes on
	since   int64 // runs that begin from here on are known
}

// reader is what a past needs.
type reader interface {
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
}

// newTaskEncoder returns the encoder of a client that goes on at an offset.
func newTaskEncoder(ctx context.Context, log reader, session string, at int64) (*taskEncoder, error) {
	t := &taskEncoder{session: session, runs: make(map[string]*taskRun)}
	from := max(at-taskLookback, 0)
	t.begin(from)
	if err := t.fold(ctx, log, from, at); err != nil {
		return nil, err
	}
	t.past = &past{log: log, session: session, at: at, since: at}
	return t, nil
}

// begin says from where t is given all events.
func (t *taskEncoder) begin(from int64) {
	if t.whole = from == 0; !t.whole {
		t.since = from + taskLookback
	}
}

// fold takes in the events of a range without telling them.
func (t *taskEncoder) fold(ctx context.Context, log reader, from, to int64) error {
	for from < to {
		p, err := log.Read(ctx, t.session, tapedeck.Range{From: from, Limit: int(min(to-from, tapedeck.DefaultLimit))})
		if err != nil {
			return err
		}
		for _, rec := range p.Records {
			e, err := rec.Event()
			if err != nil {
				return err
			}
			if _, err := t.data(ctx, &e); err != nil {
				return err
			}
		}
		if len(p.Records) == 0 {
			return nil
		}
		from = p.Next
	}
	return nil
}

// recall adds to t the runs that were under way before e, back to that of e.
func (p *past) recall(ctx context.Context, t *taskEncoder, e *tapedeck.Event) error {
	start, err := p.beginning(ctx, e.Invocation)
	if err != nil {
		return err
	}
	p.since = min(start, p.at-2*(p.at-p.since))
	from := max(p.since-taskLookback, 0)
	then := &taskEncoder{session: t.session, runs: make(map[string]*taskRun)}
	then.begin(from)
	t.whole = then.whole
	if err := then.fold(ctx, p.log, from, e.Offset); err != nil {
		return err
	}
	for id, r := range then.runs {
		if _, known := t.runs[id]; !known {
			t.runs[id] = r
		}
	}
	return nil
}

// beginning returns the offset of the RUN_STARTED of an invocation, 0 if there
// is none.
func (p *past) beginning(ctx context.Context, invocation string) (int64, error) {
	offset, _, err := backwards(ctx, p.log, p.session, p.since, func(e *tapedeck.Event) bool {
		return e.Type == tapedeck.RunStarted && e.Invocation == invocation
	})
	return offset, err
}

// meetBack is how many events meet looks back at most.
const meetBack = 5000

// meet makes r know the call of an answer which comes after its run, or belongs to
// none: its name is in an earlier event of the thread.
func (t *taskEncoder) meet(ctx context.Context, e *tapedeck.Event, r *taskRun, id string) error {
	if t.past == nil || id == "" || r.calls[id] != nil {
		return nil
	}
	c, found, err := callBefore(ctx, t.past.log, t.session, e.Offset, e.ThreadName(), id)
	if found {
		open(&r.calls, id, c)
	}
	return err
}

// callBefore returns the call of that id, from the events of a thread below an
// offset.
func callBefore(ctx context.Context, log reader, session string, before int64, thread, id string) (*taskCall, bool, error) {
	c, seen := &taskCall{started: true}, 0
	_, _, err := backwards(ctx, log, session, before, func(e *tapedeck.Event) bool {
		seen++
		return seen > meetBack || e.ThreadName() == thread && c.announced(e, id)
	})
	if err != nil || c.name == "" {
		return nil, false, err
	}
	return c, true, nil
}

// announced reports whether e makes the call of that id, and notes its name and
// when its input was complete.
func (c *taskCall) announced(e *tapedeck.Event, id string) bool {
	switch {
	case !bytes.Contains(e.Data, []byte(id)):
	case e.Type == tapedeck.ToolCallEnd && pieceOf(e).ToolCallID == id:
		c.at = e.Time
	case e.Type == tapedeck.ToolCallStart:
		if p := pieceOf(e); p.ToolCallID == id {
			c.name = p.Name
		}
	case e.Type == tapedeck.MessageAdded:
		var d payload.MessageAdded
		_ = json.Unmarshal(e.Data, &d) // see pieceOf
		for _, k := range d.Message.ToolCalls {
			if k.ID == id {
				c.name, c.at = k.Function.Name, e.Time
			}
		}
	}
	return c.name != ""
}

// backwards returns the offset of the newest event before an offset that is one
// of those wanted.
func backwards(ctx context.Context, log reader, session string, before int64, wanted func(*tapedeck.Event) bool) (int64, bool, error) {
	for limit := 64; before > 0; limit = min(2*limit, tapedeck.DefaultLimit) { // most runs are short
		p, err := log.Read(ctx, session, tapedeck.Range{From: before, Reverse: true, Limit: limit})
		if err != nil {
			return 0, false, err
		}
		for _, rec := range p.Records {
			e, err := rec.Event()
			if err != nil {
				return 0, false, err
			}
			if wanted(&e) {
				return e.Offset, true, nil
			}
		}
		before = p.Next
	}
	return 0, false, nil
}
