package task

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A lookback finds the state of the runs that began before the offset at which a
// client continues. It reads back when an event of such a run arrives, as far as the
// beginning of that run. It goes at least twice as far each time, so all reads
// together cost at most twice the distance.
type lookback struct {
	log     reader
	session string
	at      int64 // where the client continues
	since   int64 // the runs that begin from here on are known
}

// A reader reads the events of a session.
type reader interface {
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
}

// newEncoder returns the encoder of a client that continues at an offset.
func newEncoder(ctx context.Context, log reader, session string, at int64) (*encoder, error) {
	t := &encoder{session: session, runs: make(map[string]*run)}
	from := max(at-promptLookback, 0)
	t.begin(from)
	if err := t.fold(ctx, log, from, at); err != nil {
		return nil, err
	}
	t.past = &lookback{log: log, session: session, at: at, since: at}
	return t, nil
}

// begin tells t that it gets all events from an offset on.
func (t *encoder) begin(from int64) {
	if t.whole = from == 0; !t.whole {
		t.since = from + promptLookback
	}
}

// fold applies the events of a range without a result.
func (t *encoder) fold(ctx context.Context, log reader, from, to int64) error {
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

// recall adds to t the runs that were open before e, back to the run of e.
func (p *lookback) recall(ctx context.Context, t *encoder, e *tapedeck.Event) error {
	start, err := p.beginning(ctx, e.Invocation)
	if err != nil {
		return err
	}
	p.since = min(start, p.at-2*(p.at-p.since))
	from := max(p.since-promptLookback, 0)
	earlier := &encoder{session: t.session, runs: make(map[string]*run)}
	earlier.begin(from)
	t.whole = earlier.whole
	if err := earlier.fold(ctx, p.log, from, e.Offset); err != nil {
		return err
	}
	for id, r := range earlier.runs {
		if _, known := t.runs[id]; !known {
			t.runs[id] = r
		}
	}
	return nil
}

// beginning returns the offset of the RUN_STARTED of an invocation, 0 if it has
// none.
func (p *lookback) beginning(ctx context.Context, invocation string) (int64, error) {
	offset, _, err := findBackwards(ctx, p.log, p.session, p.since, func(e *tapedeck.Event) bool {
		return e.Type == tapedeck.RunStarted && e.Invocation == invocation
	})
	return offset, err
}

// callLookback is how many events findCall reads at most.
const callLookback = 5000

// findCall adds the call of an answer to r if r does not know it: the answer came
// after its run, or it belongs to no run. Then an earlier event of the thread has the
// name of the tool.
func (t *encoder) findCall(ctx context.Context, e *tapedeck.Event, r *run, id string) error {
	if t.past == nil || id == "" || r.calls[id] != nil {
		return nil
	}
	c, found, err := callBefore(ctx, t.past.log, t.session, e.Offset, e.ThreadName(), id)
	if found {
		add(&r.calls, id, c)
	}
	return err
}

// callBefore returns the call with an id from the events of a thread below an offset.
func callBefore(ctx context.Context, log reader, session string, before int64, thread, id string) (*toolCall, bool, error) {
	c, seen := &toolCall{started: true}, 0
	_, _, err := findBackwards(ctx, log, session, before, func(e *tapedeck.Event) bool {
		seen++
		return seen > callLookback || e.ThreadName() == thread && c.announced(e, id)
	})
	if err != nil || c.name == "" {
		return nil, false, err
	}
	return c, true, nil
}

// announced reports whether e makes the call with an id. It notes the name of the tool
// and the time at which the input was complete.
func (c *toolCall) announced(e *tapedeck.Event, id string) bool {
	switch {
	case !bytes.Contains(e.Data, []byte(id)):
	case e.Type == tapedeck.ToolCallEnd && partOf(e).ToolCallID == id:
		c.at = e.Time
	case e.Type == tapedeck.ToolCallStart:
		if p := partOf(e); p.ToolCallID == id {
			c.name = p.Name
		}
	case e.Type == tapedeck.MessageAdded:
		var d payload.MessageAdded
		_ = json.Unmarshal(e.Data, &d) // see partOf
		for _, k := range d.Message.ToolCalls {
			if k.ID == id {
				c.name, c.at = k.Function.Name, e.Time
			}
		}
	}
	return c.name != ""
}

// findBackwards returns the offset of the newest wanted event below an offset.
func findBackwards(ctx context.Context, log reader, session string, before int64, wanted func(*tapedeck.Event) bool) (int64, bool, error) {
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
