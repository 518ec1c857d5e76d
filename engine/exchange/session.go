package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/maphash"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// maxLanes is how many threads can have an open run at once. If there are more,
// the one without events for the longest time counts as ended.
const maxLanes = 64

// A session is the one that the decoder is creating.
type session struct {
	d      *Decoder
	number int       // in the input, from 1
	line   int       // the current line
	at     time.Time // the time of the line; zero for none
	meta   tapedeck.Members
	digest hash.Hash // digest of the lines
	lines  int
	events int64

	created      bool
	extra        tapedeck.Members // members of the source about the conversation, for session.created
	title        string           // the best one so far
	titleRank    int
	createdTitle string // the title in session.created

	nativeID string    // the source's id of the conversation
	steady   [4]string // members that the source repeats on every line

	used  map[string]struct{} // ids of messages and calls
	had   map[uint64]struct{} // what the source cannot mean twice, see repeats
	n     int                 // number of ids that were made
	lanes []*lane             // least recently written first
}

// newSession returns a session. It is created with its first event.
func (d *Decoder) newSession() *session {
	d.finish()
	d.session = &session{d: d, digest: sha256.New(), used: map[string]struct{}{}, had: map[uint64]struct{}{}}
	return d.session
}

// read adds a record to the session.
func (s *session) read(rec record) {
	s.line = rec.line
	s.lines++
	s.digest.Write(rec.raw)
	s.digest.Write([]byte{'\n'})
}

// The sources of titles, worst first.
const (
	fromText = iota + 1
	fromSummary
	fromModel
	fromUser
)

// suggestTitle suggests a title. A better source wins. Of titles from texts the first
// counts; of titles from another source the last counts, because it knows more.
func (s *session) suggestTitle(rank int, title string) {
	if title = titleOf(title); title == "" || rank < s.titleRank || rank == fromText && s.titleRank == fromText {
		return
	}
	s.title, s.titleRank = title, rank
}

// finalTitle returns the title as far as it is known.
func (s *session) finalTitle() string {
	switch asked := s.d.options.Title; {
	case asked == "":
		return s.title
	case s.number > 1:
		return fmt.Sprintf("%s (%d)", asked, s.number)
	default:
		return asked
	}
}

// create emits session.created, before the first event of the conversation.
func (s *session) create() {
	if s.created {
		return
	}
	s.d.sessions++
	s.number, s.created = s.d.sessions, true
	s.createdTitle = s.finalTitle()
	e := payload.NewEvent(payload.SessionCreated{
		Title: s.createdTitle, Owner: s.d.options.Owner,
		Common: payload.Common{Metadata: s.wrap(s.extra)},
	})
	e.Actor, e.Time = s.d.options.Actor, s.at
	s.d.starts, s.d.entry = true, tapedeck.Session{}
	s.d.emit(e)
}

// finish ends the open runs and emits session.imported. That event has no recorded
// time: it happens now.
func (s *session) finish() {
	if !s.created {
		return
	}
	for len(s.lanes) > 0 {
		s.lanes[0].cutOff = true // the input has ended
		s.retire(s.lanes[0])
	}
	p := payload.SessionImported{Format: s.d.format, Events: s.events}
	if title := s.finalTitle(); title != s.createdTitle {
		p.Title = title
	}
	p.Extra = tapedeck.Members{
		"lines":  []byte(strconv.Itoa(s.lines)),
		"digest": quoted("sha256:" + hex.EncodeToString(s.digest.Sum(nil))),
	}
	e := payload.NewEvent(p)
	e.Actor = s.d.options.Actor
	s.d.emit(e)
}

// lane returns the lane of a thread.
func (s *session) lane(thread string) *lane {
	for i, l := range s.lanes {
		if l.thread == thread && i == len(s.lanes)-1 {
			return l
		}
		if l.thread == thread {
			s.lanes = append(append(s.lanes[:i:i], s.lanes[i+1:]...), l)
			return l
		}
	}
	if len(s.lanes) >= maxLanes {
		s.retire(s.oldest())
	}
	l := &lane{session: s, thread: thread, calls: map[string][]string{}, open: map[string]struct{}{}}
	s.lanes = append(s.lanes, l)
	return l
}

// oldest returns the lane without events for the longest time, but not the main
// lane, to which the others belong.
func (s *session) oldest() *lane {
	for _, l := range s.lanes {
		if l.thread != "" {
			return l
		}
	}
	return s.lanes[0]
}

// retire ends the run of a lane and drops the lane.
func (s *session) retire(l *lane) {
	l.end()
	for i := range s.lanes {
		if s.lanes[i] == l {
			s.lanes = append(s.lanes[:i:i], s.lanes[i+1:]...)
			return
		}
	}
}

// endOtherRuns ends the open runs except that of the main thread.
func (s *session) endOtherRuns() {
	for i := 0; i < len(s.lanes); {
		if s.lanes[i].thread == "" {
			i++
			continue
		}
		s.retire(s.lanes[i])
	}
}

// wrap returns m as one member with the format's name, nil if m is empty.
func (s *session) wrap(m tapedeck.Members) tapedeck.Members {
	if len(m) == 0 {
		return nil
	}
	return tapedeck.Members{s.d.format: encode(m)}
}

// takeMeta returns the metadata of the line, for the first event from that line.
func (s *session) takeMeta() tapedeck.Members {
	m := s.wrap(s.meta)
	s.meta = nil
	return m
}

// unique returns an id that the session has not used: the given one if possible,
// otherwise one derived from it.
func (s *session) unique(given, prefix string) string {
	id := given
	if !usable(given) {
		given = prefix
		s.n++
		id = prefix + "_" + strconv.Itoa(s.n)
	}
	for {
		if _, taken := s.used[id]; !taken {
			s.used[id] = struct{}{}
			return id
		}
		s.n++
		id = given + "_" + strconv.Itoa(s.n)
	}
}

// hadSeed makes it hard to write two lines that are taken for one.
var hadSeed = maphash.MakeSeed()

// repeats reports whether the session has had a part of the source with this id and
// content. Parts without an id can be meant twice.
func (s *session) repeats(id string, content ...[]byte) bool {
	if id == "" {
		return false
	}
	var h maphash.Hash
	h.SetSeed(hadSeed)
	for _, part := range append(content, []byte(id)) {
		_, _ = h.Write(part) // it never fails
		_ = h.WriteByte(0)   // it never fails
	}
	_, had := s.had[h.Sum64()]
	s.had[h.Sum64()] = struct{}{}
	return had
}

// usable reports whether an id of the source can be kept.
func usable(id string) bool {
	return id != "" && len(id) <= 256 && !strings.ContainsFunc(id, unicode.IsControl)
}
