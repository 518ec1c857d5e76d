package exchange

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// An ndjson reads an export of Tapedeck. It keeps every event as it is. An event
// that cannot be kept is an error, because the session would differ.
type ndjson struct {
	d         *Decoder
	head      *tapedeck.Session // the entry in the header; nil without a header
	effective bool              // the file has only active events: offsets have gaps, and runs can lack their end
	next      int64             // offset of the next event
	last      int64             // the offset of the event before, in the file
	linked    bool              // an agent named its own conversation, and no import came after it
	order     mender
}

// ndjsonLine reads a header or an event. A file can have several sessions.
func (d *Decoder) ndjsonLine(rec record) error {
	m := object(rec.raw)
	switch {
	case m["tapedeck"] != nil:
		return d.ndjsonHeader(rec, m)
	case m["type"] == nil || m["offset"] == nil:
		return lineError(rec.line, "is neither the header of an export nor an event").WithHint(changed)
	}
	var e tapedeck.Event
	if err := json.Unmarshal(rec.raw, &e); err != nil {
		return atLine(rec.line, err)
	}
	if d.own == nil || d.own.head == nil && e.Offset == 0 {
		if err := d.endOwn(); err != nil {
			return err
		}
		d.beginOwn(nil, false)
	}
	return atLine(rec.line, d.own.event(e))
}

func (d *Decoder) ndjsonHeader(rec record, m tapedeck.Members) error {
	if v := string(m["tapedeck"]); v != "1" {
		return lineError(rec.line, "is the header of version "+short(v)+", which is not known here")
	}
	if m["events"] != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "line %d of the input is an export as one JSON document", rec.line).
			WithHint("export the session as ndjson (tapedeck export --format ndjson), which can be imported again")
	}
	var s tapedeck.Session
	if err := json.Unmarshal(m["session"], &s); err != nil {
		return lineError(rec.line, "is a header without a session").WithHint(changed)
	}
	if err := d.endOwn(); err != nil {
		return err
	}
	d.beginOwn(&s, str(m["view"]) == viewEffective)
	return nil
}

func (d *Decoder) beginOwn(head *tapedeck.Session, effective bool) {
	d.own = &ndjson{d: d, head: head, effective: effective, last: -1}
	d.own.order = mender{verifier: order.NewVerifier(), emit: d.own.emit}
	d.starts, d.entry = true, tapedeck.Session{}
	if head != nil {
		d.entry = *head
	}
	d.sessions++
}

// endOwn checks that a session is complete.
func (d *Decoder) endOwn() error {
	n := d.own
	if n == nil {
		return nil
	}
	d.own = nil
	switch {
	case n.head != nil && !n.effective && n.next < n.head.Head:
		return tapedeck.Errorf(tapedeck.Invalid, "the input ends after %d events of session %s, which has %d", n.next, short(n.head.ID), n.head.Head).
			WithHint("the file is incomplete; export the session again")
	case n.next == 0:
		return tapedeck.Errorf(tapedeck.Invalid, "the input has a session without events")
	}
	if n.effective {
		n.order.endAllRuns()
	}
	o := d.options
	if o.Title == "" && o.Owner == "" && !n.effective && !n.linked {
		return nil // nothing is added, so that the next export is the same
	}
	p := payload.SessionImported{Format: NDJSON, Events: n.next, Title: o.Title}
	if o.Owner != "" {
		p.Extra = tapedeck.Members{"owner": quoted(o.Owner)}
	}
	e := payload.NewEvent(p)
	e.Actor = o.Actor
	n.emit(e)
	return nil
}

func (n *ndjson) event(e tapedeck.Event) error {
	switch {
	case n.effective && e.Offset <= n.last:
		return tapedeck.Errorf(tapedeck.Invalid, "has offset %d after %d", e.Offset, n.last)
	case !n.effective && e.Offset != n.next:
		return tapedeck.Errorf(tapedeck.Invalid, "has offset %d instead of %d", e.Offset, n.next)
	}
	n.last = e.Offset
	if err := e.Check(); err != nil {
		return err
	}
	if err := checkNames(&e); err != nil {
		return err
	}
	n.dropLabels(&e)
	if n.effective {
		if e.Type == tapedeck.SessionForked {
			e.Data = encode(without(object(e.Data), setOf("previous"))) // it names a jump that is not in the file
		}
		return n.order.accept(e)
	}
	if err := n.order.verifier.Add(&e); err != nil {
		return err
	}
	n.emit(e)
	return nil
}

// dropLabels removes [Options.WithoutLabels] from an event that sets labels.
func (n *ndjson) dropLabels(e *tapedeck.Event) {
	names := n.d.options.WithoutLabels
	if len(names) == 0 || tapedeck.ChannelOf(e.Type) != tapedeck.ChannelSession {
		return
	}
	m := object(e.Data)
	labels := object(m["labels"])
	if !slices.ContainsFunc(names, func(name string) bool { return labels[name] != nil }) {
		return
	}
	rest := tapedeck.Members{} // not null, which would keep the labels before
	maps.Copy(rest, without(labels, setOf(names...)))
	m["labels"] = encode(rest)
	e.Data = encode(m)
}

// checkNames checks the members of an event that the catalogue uses.
func checkNames(e *tapedeck.Event) error {
	if tapedeck.ChannelOf(e.Type) != tapedeck.ChannelSession { // the type decides, not the channel in the file
		return nil
	}
	m := object(e.Data)
	for _, name := range []string{"title", "owner", "agent"} {
		if err := tapedeck.CheckName("the "+name, str(m[name])); err != nil {
			return err
		}
	}
	for name, v := range object(m["labels"]) {
		if err := tapedeck.CheckName("the label "+short(name), str(v)); err != nil {
			return err
		}
		if err := tapedeck.CheckID("a label's name", name); err != nil {
			return err
		}
	}
	return nil
}

func (n *ndjson) emit(e tapedeck.Event) {
	switch e.Type {
	case tapedeck.AgentLinked: // what follows must not continue that conversation
		n.linked = true
	case tapedeck.SessionImported: // already says that
		n.linked = false
	}
	e.Offset = n.next
	n.next++
	n.d.emit(e)
}

// changed is what to do about a file that is not as it was exported.
const changed = "nothing was imported; the file was changed or is damaged, so export the session again: a view, an offset or a redaction leaves events or text out"

func lineError(line int, what string) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Invalid, "line %d of the input %s", line, what)
}

// atLine adds the line to an error. Its own hint is for programs that append events.
func atLine(line int, err error) error {
	var e *tapedeck.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	return (&tapedeck.Error{Kind: tapedeck.Invalid, Message: "line " + jsonInt(int64(line)) + " of the input: " + e.Message, Err: err}).WithHint(changed)
}
