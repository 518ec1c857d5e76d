package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/protocol/rest/channels"
	"github.com/tapedeck/tapedeck/view"
)

// append appends the events in the body, all of them or none. Each line of an open body
// is an append of its own.
func (h *handler) append(w http.ResponseWriter, r *http.Request) error {
	if IsOpen(r) {
		_ = http.NewResponseController(w).EnableFullDuplex() // an answer, also an error, comes before the end of the body; without it, after the end
		w.Header().Set("Connection", "close")                // net/http panics if it reads the next request while a part of this body is left
	}
	id, err := target(r)
	if err != nil {
		return err
	}
	a := tapedeck.Append{Session: id}
	if a.Expect, err = expected(r); err != nil {
		return err
	}
	if a.Producer, err = httpapi.Producer(r); err != nil {
		return err
	}
	if IsOpen(r) {
		return h.appendLines(w, r, a)
	}
	in, err := h.readEvents(w, r)
	if err != nil {
		return err
	}
	done, err := h.appendGiven(r.Context(), a, in)
	if err != nil {
		return err
	}
	out := api.Appended{Head: done.Head, Duplicate: done.Duplicate}
	if last := done.Next - 1; done.First >= 0 {
		out.First, out.Last = &done.First, &last
	}
	w.Header().Set("ETag", etagOf(done.Head))
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

// expected returns the offset in If-Match, nil if there is none.
func expected(r *http.Request) (*int64, error) {
	v := strings.TrimSpace(r.Header.Get("If-Match"))
	if v == "" || v == "*" { // any state of the session
		return nil, nil
	}
	n, ok := httpapi.ParseOffset(strings.Trim(v, `"`))
	if !ok {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "If-Match must be the offset that the next event will get, not %q", v)
	}
	return &n, nil
}

// appendGiven appends what was read. What is in the form of the six channels is translated
// for a state of the session, which another append may change meanwhile: two first events of
// an agent would both begin its run. Then it is translated again.
func (h *handler) appendGiven(ctx context.Context, a tapedeck.Append, in *events) (tapedeck.Appended, error) {
	const attempts = 50
	for i := 0; ; i++ {
		var head int64
		var err error
		if a.Events, head, err = in.translated(ctx, h, a.Session); err != nil {
			return tapedeck.Appended{}, err
		}
		done, err := h.Verbs.Append(ctx, a)
		if tapedeck.KindOf(err) != tapedeck.Conflict || !in.schemas || a.Expect != nil || i == attempts || !h.moves(ctx, a.Session, head) {
			return done, err
		}
	}
}

// moves reports whether a session has an event at an offset or gets one soon. The order of
// events is checked before the events before them are durable, and so can be read.
func (h *handler) moves(ctx context.Context, session string, head int64) bool {
	const soon = time.Second
	ctx, stop := context.WithTimeout(ctx, soon)
	defer stop()
	for p, err := range h.Sessions.Follow(ctx, session, tapedeck.FollowOptions{From: head}) {
		if err != nil || p.Closed {
			return false
		}
		if len(p.Records) > 0 {
			return true
		}
	}
	return false
}

// readEvents reads events: an object, an array, or one object a line.
func (h *handler) readEvents(w http.ResponseWriter, r *http.Request) (*events, error) {
	in := &events{limit: h.MaxEvents, channels: isChannels(r)}
	limited, err := limitBody(w, r, h.MaxAppend)
	if err != nil {
		return nil, err
	}
	body := bufio.NewReaderSize(limited, 4<<10)
	switch mediaType(r) {
	case "application/json":
		err = in.readJSON(body, r.ContentLength)
	case "application/x-ndjson", "application/ndjson", "application/jsonl":
		err = in.readLines(body)
	default:
		return nil, unsupported(r, "application/json or application/x-ndjson")
	}
	if err == nil && len(in.list) == 0 {
		err = tapedeck.Errorf(tapedeck.Invalid, "there are no events in the body")
	}
	return in, err
}

// events are the events that were read from a body so far.
type events struct {
	list    []posted
	limit   int
	schemas bool // some are in the form of the six channels

	channels bool // the request came in that form
}

// A posted is an event of a body.
type posted struct {
	tapedeck.Event
	raw   []byte // as it came, if it is in the form of the six channels; otherwise nil
	where string // it is, for errors; "" if there is only one
}

// decode decodes one event. where names the event in errors, "" if there is only one. The
// offset of the event is ignored. Its time is the engine's business.
func (in *events) decode(raw []byte, where string) error {
	if len(in.list) == in.limit {
		return in.tooMany()
	}
	g := posted{where: where}
	schema := in.channels && channels.IsAt(raw)
	if !schema {
		err := g.UnmarshalJSON(raw)
		if schema = err != nil && channels.Is(raw); err != nil && !schema {
			return eventError(err, where)
		}
	}
	if schema {
		in.schemas, g.raw, g.Event = true, slices.Clone(raw), tapedeck.Event{}
	}
	g.Offset = 0
	in.list = append(in.list, g)
	return nil
}

func (in *events) tooMany() error {
	return tapedeck.Errorf(tapedeck.TooLarge, "there are more than %d events in the body", in.limit).WithHint("append them in parts")
}

// translated returns the events as the log has them, and the head of the session for which
// they were translated.
func (in *events) translated(ctx context.Context, h *handler, session string) (list []tapedeck.Event, head int64, err error) {
	var t *channels.Translator
	if in.schemas {
		if t, head, err = h.translator(ctx, session); err != nil {
			return nil, 0, err
		}
	}
	list = make([]tapedeck.Event, 0, len(in.list))
	for i := range in.list {
		g := &in.list[i]
		if g.raw == nil {
			list = append(list, g.Event)
			continue
		}
		out, err := t.Translate(g.raw)
		if err != nil {
			return nil, 0, eventError(err, g.where)
		}
		if list = append(list, out...); len(list) > in.limit {
			return nil, 0, in.tooMany()
		}
	}
	return list, head, nil
}

// translator returns a translator that continues at the head of the session.
func (h *handler) translator(ctx context.Context, session string) (t *channels.Translator, head int64, err error) {
	s, err := h.Sessions.Head(ctx, session)
	if err != nil {
		return nil, 0, err
	}
	called := func(thread, id string) (channels.Known, error) {
		now, err := h.Views.Snapshot(ctx, session, view.Query{At: new(s.Head), Thread: thread})
		for _, k := range slices.Backward(now.Calls) {
			switch {
			case k.ID != id:
			case k.Result != nil:
				return channels.Answered, err
			case k.Made != nil:
				return channels.Made, err
			default:
				return channels.Begun, err
			}
		}
		return channels.Unknown, err
	}
	begun := func(thread, run string) (ids []string, err error) {
		now, err := h.Views.Snapshot(ctx, session, view.Query{At: new(s.Head), Thread: thread})
		for _, k := range now.Calls {
			if k.Made == nil && k.Invocation == run {
				ids = append(ids, k.ID)
			}
		}
		return ids, err
	}
	return &channels.Translator{Session: session, Runs: s.Runs, Called: called, Begun: begun}, s.Head, nil
}

// eventError adds the event to an error, if there are several events.
func eventError(err error, where string) error {
	if where == "" {
		return err
	}
	e := &tapedeck.Error{Kind: tapedeck.Invalid, Message: where + ": " + err.Error(), Err: err}
	if cause := (*tapedeck.Error)(nil); errors.As(err, &cause) {
		e.Kind, e.Hint = cause.Kind, cause.Hint
	}
	return e
}

// readJSON reads an event or an array of events. declared is the announced length of the
// body, -1 if there is none.
func (in *events) readJSON(body *bufio.Reader, declared int64) error {
	first, skipped, err := firstByte(body)
	if err != nil {
		return err
	}
	if first != '[' {
		if declared >= 0 {
			declared -= skipped
		}
		return in.readOne(body, declared)
	}
	d := json.NewDecoder(body)
	_, _ = d.Token() // the opening bracket
	for d.More() {
		var raw json.RawMessage
		if err := in.next(d, &raw, fmt.Sprintf("event %d", len(in.list)+1)); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the closing bracket
		return bodyError(err, "the array of events")
	}
	return in.finish(d)
}

// readOne reads a body that is one event. If it cannot be decoded, the error says whether
// the body has more than one event.
func (in *events) readOne(body *bufio.Reader, declared int64) error {
	raw, err := intake.ReadAll(body, declared)
	if err != nil {
		return readError(err)
	}
	failed := in.decode(raw, "")
	if failed == nil || json.Valid(raw) {
		return failed
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(new(json.RawMessage)); err != nil {
		return bodyError(err, "the event")
	}
	return in.finish(d)
}

// next decodes the next event of an array.
func (in *events) next(d *json.Decoder, raw *json.RawMessage, where string) error {
	if err := d.Decode(raw); err != nil {
		return bodyError(err, where)
	}
	return in.decode(*raw, where)
}

// finish checks that nothing follows the events.
func (in *events) finish(d *json.Decoder) error {
	_, err := d.Token()
	var tooLong *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &tooLong):
		return err
	}
	return tapedeck.Errorf(tapedeck.Invalid, "something follows the events in the body").
		WithHint("send several events as an array, or one a line as application/x-ndjson")
}

// bodyError returns the error of reading JSON from a body.
func bodyError(err error, where string) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return tapedeck.Errorf(tapedeck.Invalid, "%s is malformed JSON near byte %d of the body", where, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return tapedeck.Errorf(tapedeck.Invalid, "%s ends too early", where)
	}
	return readError(err)
}

// firstByte returns the first byte that is not space, and how many bytes it skipped.
func firstByte(body *bufio.Reader) (first byte, skipped int64, err error) {
	for ; ; skipped++ {
		c, err := body.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return 0, 0, tapedeck.Errorf(tapedeck.Invalid, "there are no events in the body")
		case err != nil:
			return 0, 0, readError(err)
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return c, skipped, body.UnreadByte()
		}
	}
}

// readLines reads one event a line.
func (in *events) readLines(body *bufio.Reader) error {
	for n := 1; ; n++ {
		line, err := body.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return readError(err)
		}
		if line := bytes.TrimSpace(line); len(line) > 0 {
			if err := in.decode(line, fmt.Sprintf("line %d", n)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}
