package frame

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// An Answer is a frame of a server that concerns an append.
type Answer struct {
	Type    string
	Seq     int64             // of the append; -1 for none
	Done    tapedeck.Appended // of an ack
	Err     error             // of an error; a refusal of the log is a [*tapedeck.AppendError]
	Session string
}

// ParseAnswer reads an answer. Members that it does not know are ignored, because a newer
// server may send them.
func ParseAnswer(line []byte) (Answer, error) {
	if a, ok := scanAck(line); ok {
		return a, nil
	}
	var w struct {
		Type      string           `json:"type"`
		Seq       *int64           `json:"seq"`
		Session   string           `json:"session"`
		First     *int64           `json:"first"`
		Last      *int64           `json:"last"`
		Head      int64            `json:"head"`
		Duplicate bool             `json:"duplicate"`
		Error     problem.Detail   `json:"error"`
		Refusal   tapedeck.Refusal `json:"refusal"`
		Epoch     int64            `json:"epoch"`
		Expected  int64            `json:"expected_seq"`
	}
	if err := json.Unmarshal(line, &w); err != nil {
		return Answer{}, tapedeck.Errorf(tapedeck.Internal, "the server's answer cannot be read: %w", err)
	}
	a := Answer{Type: w.Type, Seq: -1, Session: w.Session, Done: tapedeck.Appended{First: -1, Next: -1, Head: w.Head, Duplicate: w.Duplicate}}
	if w.Seq != nil {
		a.Seq = *w.Seq
	}
	if w.First != nil && w.Last != nil {
		a.Done.First, a.Done.Next = *w.First, *w.Last+1
	}
	if w.Type == TypeError {
		e := &tapedeck.Error{Kind: w.Error.Kind, Message: w.Error.Message, Hint: w.Error.Hint}
		if a.Err = e; w.Refusal != "" {
			a.Err = &tapedeck.AppendError{Refusal: w.Refusal, Head: w.Head, Epoch: w.Epoch, Seq: w.Expected, Err: e}
		}
	}
	return a, nil
}

// scanAck reads an acknowledgement in the form that [AppendAck] writes, without
// encoding/json.
func scanAck(line []byte) (Answer, bool) {
	s := jsonobj.Scanner{B: line, Ok: true}
	a := Answer{Type: TypeAck}
	s.Expect(`{"type":"ack","seq":`)
	a.Seq = s.Int()
	if s.Accept(`,"session":`) {
		a.Session = string(s.String())
	}
	s.Expect(`,"first":`)
	a.Done.First = s.Int()
	s.Expect(`,"last":`)
	a.Done.Next = s.Int() + 1
	s.Expect(`,"head":`)
	a.Done.Head = s.Int()
	s.Expect(`}`)
	return a, s.Ok && len(s.B) == 0
}
