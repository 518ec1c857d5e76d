package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// maxLanes is how many threads may have a run open at once. When there are more,
// the one that was quiet for longest is taken as done.
const maxLanes = 64

// A session is the session that is being made.
type session struct {
	d      *Decoder
	number int       // among those of the input, from 1
	line   int       // that is being read
	at     time.Time // its time; zero for none
	meta   tapedeck.Members
	digest hash.Hash // of the lines
	lines  int
	events int64

	created   bool
	extra     tapedeck.Members // what the source says of the conversation, for session.created
	title     string           // the best so far
	titleRank int
	said      string // the title that session.created has

	native string    // the source's id of the conversation
	steady [4]string // what the source repeats on every line

	used  map[string]struct{} // ids of messages and calls
	n     int                 // of ids that were made
	lanes []*lane             // least recently written first
}

// newSession begins a session. It comes to be with its first event.
func (d *Decoder) newSession() *session {
	d.finish()
	d.session = &session{d: d, digest: sha256.New(), used: map[string]struct{}{}}
	return d.session
}

// read notes that a record belongs to the session.
func (s *session) read(rec record) {
	s.line = rec.line
	s.lines++
	s.digest.Write(rec.raw)
	s.digest.Write([]byte{'\n'})
}

// What titles come from, the better one later.
const (
	fromText = iota + 1
	fromSummary
	fromModel
	fromUser
)

// suggest offers a title. Of one rank the first text counts, but the last
// summary: it knows more.
func (s *session) suggest(rank int, title string) {
	if title = titleOf(title); title == "" || rank < s.titleRank || rank == fromText && s.titleRank == fromText {
		return
	}
	s.title, s.titleRank = title, rank
}

// finalTitle returns the title as far as it is known now.
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
	s.said = s.finalTitle()
	e := payload.NewEvent(payload.SessionCreated{
		Title: s.said, Owner: s.d.options.Owner,
		Common: payload.Common{Metadata: s.wrap(s.extra)},
	})
	e.Actor, e.Time = s.d.options.Actor, s.at
	s.d.starts, s.d.entry = true, tapedeck.Session{}
	s.d.emit(e)
}

// finish ends what is open and emits session.imported. That has no time of its
// own: it happens now.
func (s *session) finish() {
	if !s.created {
		return
	}
	for len(s.lanes) > 0 {
		s.lanes[0].cutOff = true // nothing can come any more
		s.retire(s.lanes[0])
	}
	p := payload.SessionImported{Format: s.d.format, Events: s.events}
	if title := s.finalTitle(); title != s.said {
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

// oldest returns the lane that was quiet for longest, but not the main one: all
// others are there because of it.
func (s *session) oldest() *lane {
	for _, l := range s.lanes {
		if l.thread != "" {
			return l
		}
	}
	return s.lanes[0]
}

// retire ends the run of a lane and forgets it.
func (s *session) retire(l *lane) {
	l.end()
	for i := range s.lanes {
		if s.lanes[i] == l {
			s.lanes = append(s.lanes[:i:i], s.lanes[i+1:]...)
			return
		}
	}
}

// others ends the runs that were open beside that of the main thread.
func (s *session) others() {
	for i := 0; i < len(s.lanes); {
		if s.lanes[i].thread == "" {
			i++
			continue
		}
		s.retire(s.lanes[i])
	}
}

// wrap puts what the source says beside the conversation under the name of the
// format, nil if there is nothing.
func (s *session) wrap(m tapedeck.Members) tapedeck.Members {
	if len(m) == 0 {
		return nil
	}
	return tapedeck.Members{s.d.format: encode(m)}
}

// takeMeta returns the metadata of the line, for the first event that is made of
// it.
func (s *session) takeMeta() tapedeck.Members {
	m := s.wrap(s.meta)
	s.meta = nil
	return m
}

// unique returns an id that the session has not had: the given one if it can be,
// else one made of it.
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

// usable reports whether a source's id can be kept.
func usable(id string) bool {
	return id != "" && len(id) <= 256 && !strings.ContainsFunc(id, unicode.IsControl)
}
