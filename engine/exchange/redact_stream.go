package exchange

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A stream is a text in the deltas of several events: a message, the arguments of
// a call, or the output of a terminal. The redactor holds it until it ends or
// fills a window. When the window is full, it keeps the last part, because a match
// can continue after it.
const (
	streamWindow = 256 << 10
	minStream    = 64 << 10 // kept of a full window
	maxStream    = 4 << 20  // held at most, while a match does not end
	maxStreams   = 64       // held at the same time
)

// A streamKey names a stream.
type streamKey struct{ kind, thread, invocation, id string }

// A piece is the delta of one event.
type piece struct {
	offset int64
	from   int // in the held text
	len    int
	start  int // its position in the delta: 0, unless its beginning was dropped
}

type stream struct {
	key    streamKey
	text   []byte // see [payload.Piece]
	pieces []piece
}

// An edit replaces a part of a delta.
type edit struct {
	from, to    int
	replacement string
}

type streams struct {
	redactor *Redactor
	byKey    map[streamKey]*stream
	order    []*stream // least recently written first
}

func newStreams(r *Redactor) streams { return streams{redactor: r, byKey: map[streamKey]*stream{}} }

// streamTypes has the types with a delta, the member with the delta, and the
// member with the id of its stream.
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
	delta := jsonobj.PieceOf(m[t.delta])
	one.pieces = append(one.pieces, piece{offset: e.Offset, from: len(one.text), len: len(delta)})
	one.text = append(one.text, delta...)
	if len(one.text) >= streamWindow {
		s.redactor.redactStream(one, len(one.text) < maxStream)
	}
}

func (s *streams) stream(key streamKey) *stream {
	one, ok := s.byKey[key]
	if !ok {
		if len(s.order) >= maxStreams {
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

// endRun ends the streams of a run. A closed message can be opened again, but not
// after the end of its run.
func (s *streams) endRun(e *tapedeck.Event) {
	for _, one := range slices.Clone(s.order) {
		if one.key.invocation == e.Invocation && one.key.kind != "output" && one.key.kind != "input" {
			s.end(one)
		}
	}
}

func (s *streams) end(one *stream) {
	s.redactor.redactStream(one, false)
	delete(s.byKey, one.key)
	s.order = slices.DeleteFunc(s.order, func(o *stream) bool { return o == one })
}

func (s *streams) endAll() {
	for len(s.order) > 0 {
		s.end(s.order[0])
	}
}

// redactStream records the edits for the held text. If the stream continues, it
// keeps the last part.
func (r *Redactor) redactStream(s *stream, goesOn bool) {
	cut := len(s.text)
	spans := r.spansOfPieces(string(s.text))
	if goesOn {
		cut -= minStream
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
		r.addEdits(s, sp)
	}
	s.dropBefore(cut)
}

// spansOfPieces searches the whole text, and returns the spans in the pieces. Their offsets
// differ where two halves of a character have met.
func (r *Redactor) spansOfPieces(pieces string) []span {
	whole, met := jsonobj.WholeAt(pieces)
	spans := r.spans(whole)
	if len(met) == 0 {
		return spans
	}
	place := func(at int) int {
		before, _ := slices.BinarySearch(met, at)
		return at + 2*before
	}
	for i := range spans {
		sp := &spans[i]
		sp.from, sp.to, sp.context = place(sp.from), place(sp.to), place(sp.context)
	}
	return spans
}

// addEdits records the edits that leave a span out of its events.
func (r *Redactor) addEdits(s *stream, sp span) {
	put, told := sp.replacement, false
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
				one.found(p.offset, jsonobj.Whole(string(s.text[sp.from:sp.to])))
			}
		}
		r.edits[p.offset] = append(r.edits[p.offset], edit{from - p.from + p.start, to - p.from + p.start, put})
		put = "" // the replacement is only where the match begins
	}
}

// dropBefore drops the text before cut.
func (s *stream) dropBefore(cut int) {
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

// apply applies edits to a delta. The delta may have been erased since the edits
// were recorded.
func apply(s jsonobj.Piece, edits []edit) jsonobj.Piece {
	var b []byte
	at := 0
	for _, e := range edits {
		b = append(append(b, s[at:max(at, min(e.from, len(s)))]...), e.replacement...)
		at = max(at, min(e.to, len(s)))
	}
	return jsonobj.Piece(append(b, s[at:]...))
}
