package exchange

import (
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A stream is a text that comes in the deltas of several events: a message, the
// arguments of a call, what a terminal shows. It is held until it ends or has
// grown to a window; of that the last part is held on, so that what begins in it
// is found with what follows.
const (
	streamWindow = 256 << 10
	streamKept   = 64 << 10 // at least
	streamMost   = 4 << 20  // what may be held because one match does not end
	streamsMost  = 64       // held at once
)

// A streamKey names a stream.
type streamKey struct{ kind, thread, invocation, id string }

// A piece is the delta of one event.
type piece struct {
	offset int64
	from   int // in the text that is held
	len    int
	start  int // of it in the delta: 0, unless the beginning was let go
}

type stream struct {
	key    streamKey
	text   []byte
	pieces []piece
}

// An edit changes a delta.
type edit struct {
	from, to int
	put      string
}

type streams struct {
	redactor *Redactor
	byKey    map[streamKey]*stream
	order    []*stream // least recently written first
}

func newStreams(r *Redactor) streams { return streams{redactor: r, byKey: map[streamKey]*stream{}} }

// streamTypes says which types have a delta, in which member, and which member
// names what it belongs to.
var streamTypes = map[string]struct{ kind, delta, id string }{
	tapedeck.TextMessageContent:      {"text", "delta", "messageId"},
	tapedeck.ReasoningMessageContent: {"reasoning", "delta", "messageId"},
	tapedeck.ToolCallArgs:            {"arguments", "delta", "toolCallId"},
	tapedeck.TerminalOutput:          {"output", "data", "terminal"},
	tapedeck.TerminalInput:           {"input", "data", "terminal"},
}

// add adds the delta of an event to its stream.
func (s *streams) add(e *tapedeck.Event) {
	t := streamTypes[e.Type]
	m := object(e.Data)
	key := streamKey{t.kind, e.ThreadName(), e.Invocation, str(m[t.id])}
	one := s.stream(key)
	delta := str(m[t.delta])
	one.pieces = append(one.pieces, piece{offset: e.Offset, from: len(one.text), len: len(delta)})
	one.text = append(one.text, delta...)
	if len(one.text) >= streamWindow {
		s.redactor.settle(one, len(one.text) < streamMost)
	}
}

func (s *streams) stream(key streamKey) *stream {
	one, ok := s.byKey[key]
	if !ok {
		if len(s.order) >= streamsMost {
			s.end(s.order[0])
		}
		one = &stream{key: key}
		s.byKey[key] = one
	} else {
		s.order = slices.DeleteFunc(s.order, func(o *stream) bool { return o == one })
	}
	s.order = append(s.order, one)
	return one
}

// endRun ends the streams of a run. A message that was closed may be opened
// again, but not after its run.
func (s *streams) endRun(e *tapedeck.Event) {
	for _, one := range slices.Clone(s.order) {
		if one.key.invocation == e.Invocation && one.key.kind != "output" && one.key.kind != "input" {
			s.end(one)
		}
	}
}

func (s *streams) end(one *stream) {
	s.redactor.settle(one, false)
	delete(s.byKey, one.key)
	s.order = slices.DeleteFunc(s.order, func(o *stream) bool { return o == one })
}

func (s *streams) endAll() {
	for len(s.order) > 0 {
		s.end(s.order[0])
	}
}

// settle finds what is to go from the text that is held. If the stream goes on,
// its last part stays.
func (r *Redactor) settle(s *stream, goesOn bool) {
	cut := len(s.text)
	spans := r.spans(string(s.text))
	if goesOn {
		cut -= streamKept
		for _, sp := range spans {
			if sp.to > cut && sp.context < cut {
				cut = sp.context
			}
		}
	}
	for _, sp := range spans {
		if sp.from >= cut {
			break
		}
		r.note(s, sp)
	}
	s.letGo(cut)
}

// note remembers where the text of a span lies in the events.
func (r *Redactor) note(s *stream, sp span) {
	put, told := sp.put, false
	first, _ := slices.BinarySearchFunc(s.pieces, sp.from, func(p piece, at int) int { return p.from + p.len - 1 - at })
	for _, p := range s.pieces[first:] {
		if p.from >= sp.to {
			break
		}
		from, to := max(sp.from, p.from), min(sp.to, p.from+p.len)
		if from >= to {
			continue
		}
		if !told {
			told = true
			for _, one := range sp.rules {
				one.found(p.offset, string(s.text[sp.from:sp.to]))
			}
		}
		r.edits[p.offset] = append(r.edits[p.offset], edit{from - p.from + p.start, to - p.from + p.start, put})
		put = "" // it stands where the match begins
	}
}

// letGo forgets the text before cut.
func (s *stream) letGo(cut int) {
	if cut <= 0 {
		return
	}
	kept := s.pieces[:0]
	for _, p := range s.pieces {
		if p.from+p.len <= cut {
			continue
		}
		if p.from < cut {
			p.start += cut - p.from
			p.len -= cut - p.from
			p.from = cut
		}
		p.from -= cut
		kept = append(kept, p)
	}
	s.pieces = kept
	s.text = append(s.text[:0], s.text[cut:]...)
}

// apply makes the edits in a delta, which may have been erased since it was
// looked at.
func apply(s string, edits []edit) string {
	var b []byte
	at := 0
	for _, e := range edits {
		b = append(append(b, s[at:max(at, min(e.from, len(s)))]...), e.put...)
		at = max(at, min(e.to, len(s)))
	}
	return string(append(b, s[at:]...))
}
