package frame

import (
	"errors"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// Parse reads a request. Its events share the memory of line, which must not be changed
// afterwards. An error is [tapedeck.Invalid], or [tapedeck.Unsupported] for an unknown
// type.
func Parse(line []byte) (Request, error) {
	r := Request{Seq: -1}
	typ := typeOf(line)
	if allowed[typ] == nil {
		return r, typeError(line, typ)
	}
	r.Type = typ
	o := jsonobj.Read(line)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		read := allowed[typ][string(name)]
		if read == nil {
			return r, tapedeck.Errorf(tapedeck.Invalid, "a frame of type %s cannot have the member %s", typ, jsonobj.Quote(string(name)))
		}
		if err := read(&r, raw); err != nil {
			return r, wrong(err, typ, string(name))
		}
	}
	if o.Bad {
		return r, malformed()
	}
	if typ == TypeAppend && r.Seq < 0 {
		return r, tapedeck.Errorf(tapedeck.Invalid, "an append needs its number seq").WithHint("number the appends of a socket 0, 1, 2 and so on")
	}
	return r, nil
}

// typeOf returns the type of a frame, which is usually its first member.
func typeOf(line []byte) string {
	o := jsonobj.Read(line)
	if name, raw, ok := o.Next(); ok && string(name) == "type" {
		return jsonobj.StringOf(raw)
	}
	return jsonobj.StringOf(jsonobj.Member(line, "type"))
}

func malformed() error {
	return tapedeck.Errorf(tapedeck.Invalid, "a frame is one JSON object on one line; this line is not").
		WithHint("a message has one frame, or several, one a line")
}

// typeError returns the error of a frame without a known type.
func typeError(line []byte, typ string) error {
	o := jsonobj.Read(line)
	for _, _, ok := o.Next(); ok; _, _, ok = o.Next() {
	}
	if o.Bad {
		return malformed()
	}
	return tapedeck.Errorf(tapedeck.Unsupported, "there are no frames of type %s", jsonobj.Quote(typ)).
		WithHint("a client sends append, follow and unfollow")
}

// wrong adds the member to an error.
func wrong(err error, typ, member string) error {
	return within(err, "the member "+member+" of the frame "+typ)
}

func wrongEvent(err error, n int) error { return within(err, "event "+strconv.Itoa(n)) }

// within adds the place of an error. It keeps kind and hint.
func within(err error, place string) error {
	e := tapedeck.Errorf(tapedeck.KindOf(err), "%s: %w", place, err)
	if cause := (*tapedeck.Error)(nil); errors.As(err, &cause) {
		e.Hint = cause.Hint
	}
	return e
}

// A reader sets a member of a request.
type reader func(*Request, []byte) error

// allowed are the members of each type.
var allowed = map[string]map[string]reader{
	TypeAppend: {
		"type": skip, "session": readSession, "seq": readInt(func(r *Request) *int64 { return &r.Seq }),
		"events": (*Request).readEvents, "expect": readExpect, "producer": (*Request).readProducer,
	},
	TypeFollow: {
		"type": skip, "session": readSession, "from": readInt(func(r *Request) *int64 { return &r.From }), "until": readUntil,
		"incarnation": readInt(func(r *Request) *int64 { return &r.Incarnation }),
		"channels":    readList(func(r *Request) *[]string { return &r.Channels }), "threads": readList(func(r *Request) *[]string { return &r.Threads }),
		"types": readList(func(r *Request) *[]string { return &r.Types }), "invocations": readList(func(r *Request) *[]string { return &r.Invocations }),
	},
	TypeUnfollow: {"type": skip, "session": readSession},
}

func skip(*Request, []byte) error { return nil }

func readSession(r *Request, raw []byte) error {
	r.Session = jsonobj.StringOf(raw)
	return tapedeck.CheckID("the session's id", r.Session)
}

func readInt(of func(*Request) *int64) reader {
	return func(r *Request, raw []byte) error { return setInt(of(r), raw) }
}

func setInt(n *int64, raw []byte) (err error) {
	if *n, err = strconv.ParseInt(string(raw), 10, 64); err != nil || *n < 0 || raw[0] == '+' {
		return tapedeck.Errorf(tapedeck.Invalid, "it must be a whole number from 0, not %s", jsonobj.Quote(string(raw)))
	}
	return nil
}

func readExpect(r *Request, raw []byte) error {
	r.Expect = new(int64)
	return setInt(r.Expect, raw)
}

func readUntil(r *Request, raw []byte) error {
	if r.Until = jsonobj.StringOf(raw); r.Until != "terminal" {
		return tapedeck.Errorf(tapedeck.Invalid, `it can only be "terminal"`)
	}
	return nil
}

// maxSelected is the largest number of names in a list of a filter.
const maxSelected = 100

func readList(of func(*Request) *[]string) reader {
	return func(r *Request, raw []byte) error {
		list := of(r)
		*list = []string{}
		a := jsonobj.ReadArray(raw)
		for v, ok := a.Next(); ok; v, ok = a.Next() {
			name := jsonobj.StringOf(v)
			if err := tapedeck.CheckID("a name in it", name); err != nil {
				return err
			}
			if *list = append(*list, name); len(*list) > maxSelected {
				return tapedeck.Errorf(tapedeck.TooLarge, "it has more than %d names", maxSelected)
			}
		}
		if a.Bad || len(*list) == 0 {
			return tapedeck.Errorf(tapedeck.Invalid, "it must be an array of names").WithHint("leave it out to get all")
		}
		return nil
	}
}

func (r *Request) readProducer(raw []byte) error {
	p := tapedeck.Producer{Epoch: -1, Seq: -1}
	o := jsonobj.Read(raw)
	for name, v, ok := o.Next(); ok; name, v, ok = o.Next() {
		var err error
		switch string(name) {
		case "id":
			p.ID = jsonobj.StringOf(v)
			err = tapedeck.CheckName("its id", p.ID)
		case "epoch":
			err = setInt(&p.Epoch, v)
		case "seq":
			err = setInt(&p.Seq, v)
		default:
			err = tapedeck.Errorf(tapedeck.Invalid, "a producer has id, epoch and seq, not %s", jsonobj.Quote(string(name)))
		}
		if err != nil {
			return err
		}
	}
	if o.Bad || p.ID == "" || p.Epoch < 0 || p.Seq < 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "a producer has id, epoch and seq")
	}
	r.Producer = &p
	return nil
}

func (r *Request) readEvents(raw []byte) error {
	a := jsonobj.ReadArray(raw)
	for v, ok := a.Next(); ok; v, ok = a.Next() {
		e, err := Event(v)
		if err != nil {
			return wrongEvent(err, len(r.Events)+1)
		}
		r.Events = append(r.Events, e)
	}
	if a.Bad {
		return tapedeck.Errorf(tapedeck.Invalid, "it must be an array of events")
	}
	return nil
}

// Event reads the envelope of an event. The offset counts as absent. The event may share
// memory with raw.
func Event(raw []byte) (tapedeck.Event, error) {
	e, err := tapedeck.Record{Data: raw}.Event() // does not copy the data
	if err != nil {
		e = tapedeck.Event{}
		err = e.UnmarshalJSON(raw) // the same, with an error for clients
	}
	e.Offset = 0
	return e, err
}
