package frame

import (
	"errors"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// AppendRequest appends the frame of an append.
func AppendRequest(b []byte, seq int64, session string, p *tapedeck.Producer, events []byte) []byte {
	b = strconv.AppendInt(append(b, `{"type":"append","seq":`...), seq, 10)
	b = jsonobj.AppendJSON(append(b, `,"session":`...), session)
	if p != nil {
		b = jsonobj.AppendJSON(append(b, `,"producer":{"id":`...), p.ID)
		b = strconv.AppendInt(append(b, `,"epoch":`...), p.Epoch, 10)
		b = strconv.AppendInt(append(b, `,"seq":`...), p.Seq, 10)
		b = append(b, '}')
	}
	b = append(append(b, `,"events":`...), events...)
	return append(b, "}\n"...)
}

// AppendAck appends the acknowledgement of an append.
func AppendAck(b []byte, seq int64, session string, done tapedeck.Appended) []byte {
	b = strconv.AppendInt(append(b, `{"type":"ack","seq":`...), seq, 10)
	if session != "" {
		b = jsonobj.AppendJSON(append(b, `,"session":`...), session)
	}
	if done.First >= 0 {
		b = strconv.AppendInt(append(b, `,"first":`...), done.First, 10)
		b = strconv.AppendInt(append(b, `,"last":`...), done.Next-1, 10)
	}
	b = strconv.AppendInt(append(b, `,"head":`...), done.Head, 10)
	if done.Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	return append(b, "}\n"...)
}

// AppendError appends the frame of an error as its receiver sees it. seq is the number of
// the append that it refuses, -1 for none; session may be empty. cause may be a refusal
// of the log, whose details are added.
func AppendError(b []byte, seq int64, session string, e *tapedeck.Error, cause error) []byte {
	b = append(b, `{"type":"error"`...)
	if seq >= 0 {
		b = strconv.AppendInt(append(b, `,"seq":`...), seq, 10)
	}
	if session != "" {
		b = jsonobj.AppendJSON(append(b, `,"session":`...), session)
	}
	b = jsonobj.AppendJSON(append(b, `,"error":{"kind":`...), string(e.Kind))
	b = jsonobj.AppendJSON(append(b, `,"message":`...), e.Message)
	if e.Hint != "" {
		b = jsonobj.AppendJSON(append(b, `,"hint":`...), e.Hint)
	}
	b = append(b, '}')
	var refused *tapedeck.AppendError
	if errors.As(cause, &refused) {
		b = jsonobj.AppendJSON(append(b, `,"refusal":`...), string(refused.Refusal))
		b = strconv.AppendInt(append(b, `,"head":`...), refused.Head, 10)
		switch refused.Refusal {
		case tapedeck.RefusedEpoch:
			b = strconv.AppendInt(append(b, `,"epoch":`...), refused.Epoch, 10)
		case tapedeck.RefusedGap:
			b = strconv.AppendInt(append(b, `,"expected_seq":`...), refused.Seq, 10)
		}
	}
	return append(b, "}\n"...)
}

// AppendNote appends a frame of a followed session that is not an event. reason may be
// empty.
func AppendNote(b []byte, typ, session, reason string, next, incarnation int64) []byte {
	b = append(append(append(b, `{"type":"`...), typ...), `","session":`...)
	b = jsonobj.AppendJSON(b, session)
	if reason != "" {
		b = append(append(append(b, `,"reason":"`...), reason...), '"')
	}
	b = strconv.AppendInt(append(b, `,"next":`...), next, 10)
	return AppendEventEnd(b, incarnation)
}

// AppendEventStart appends the part of the frame of an event that precedes the envelope.
func AppendEventStart(b []byte, session string) []byte {
	return append(jsonobj.AppendJSON(append(b, `{"type":"event","session":`...), session), `,"event":`...)
}

// AppendEventEnd appends the part of the frame of an event that follows the envelope, with
// the incarnation of its session unless that is 0.
func AppendEventEnd(b []byte, incarnation int64) []byte {
	if incarnation != 0 {
		b = strconv.AppendInt(append(b, `,"incarnation":`...), incarnation, 10)
	}
	return append(b, "}\n"...)
}

// Heartbeat is the frame that a silent server sends.
const Heartbeat = `{"type":"heartbeat"}` + "\n"
