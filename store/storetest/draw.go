package storetest

import (
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
)

var modelIDs = []string{"a", "b", "c", "stream/a", "stream/b"}

var modelStatuses = []tapedeck.Status{"", "", "", tapedeck.StatusIdle, tapedeck.StatusRunning, tapedeck.StatusWaiting, tapedeck.StatusComplete}

func drawID(r *rapid.T) string { return rapid.SampledFrom(modelIDs).Draw(r, "id") }

// chance draws true once in n times.
func chance(r *rapid.T, n int, what string) bool {
	return rapid.IntRange(0, n-1).Draw(r, what) == n-1
}

// drawRecords draws records for a session of this id. Events are drawn as the store
// keeps them, so that the model need not know which members the store sets.
func (m *machine) drawRecords(r *rapid.T, id string, most int) (events []tapedeck.Event, chunks [][]byte) {
	for range rapid.IntRange(0, most).Draw(r, "records") {
		text := strings.Repeat("x", rapid.IntRange(0, 60).Draw(r, "size"))
		if isStream(id) {
			chunks = append(chunks, []byte(text))
			continue
		}
		e := tapedeck.Event{Time: m.now(), Type: rapid.SampledFrom([]string{
			"CUSTOM", "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", tapedeck.SessionRenamed, tapedeck.PermissionRequested, tapedeck.PermissionAnswered,
		}).Draw(r, "type")}
		e.Channel = tapedeck.ChannelOf(e.Type)
		e.Invocation = rapid.SampledFrom([]string{"i1", "i2"}).Draw(r, "invocation")
		id := rapid.SampledFrom([]string{"q1", "q2", ""}).Draw(r, "question")
		e.Data = []byte(`{"title":"` + text + `","id":"` + id + `","message":"` + text + `"}`)
		events = append(events, e)
	}
	return events, chunks
}

func (m *machine) drawAppend(r *rapid.T) tapedeck.Append {
	a := tapedeck.Append{Session: drawID(r), Close: chance(r, 8, "close")}
	a.Events, a.Chunks = m.drawRecords(r, a.Session, 3)
	e := m.model.entry(a.Session)
	if e == nil || e.deleted { // the contract does not order the checks
		a.Close = true
		return a
	}
	if chance(r, 4, "expect") {
		head := e.s.Head + int64(rapid.IntRange(-1, 1).Draw(r, "off by"))
		a.Expect = &head
	}
	if chance(r, 2, "producer") {
		a.Producer = &tapedeck.Producer{
			ID: rapid.SampledFrom([]string{"w", "w", "w", "v", ""}).Draw(r, "producer id"),
		}
		e.drawNext(r, a.Producer)
	}
	if e.s.ClosedBy != nil && chance(r, 2, "by the closer") {
		a.Producer = e.s.ClosedBy
	}
	if chance(r, 5, "sequence") {
		a.StreamSeq = rapid.StringMatching(`[a-c]{1,3}`).Draw(r, "stream sequence")
	}
	if chance(r, 10, "check") {
		a.Check = sayNo
	}
	return a
}

// drawNext draws an epoch and a sequence number close to the next ones.
func (e *entry) drawNext(r *rapid.T, p *tapedeck.Producer) {
	last := tapedeck.Producer{Seq: -1}
	for _, d := range e.done {
		if d.ID == p.ID {
			last = d.Producer
		}
	}
	p.Epoch = last.Epoch + rapid.SampledFrom([]int64{0, 0, 0, 0, 1, -1}).Draw(r, "epoch off by")
	p.Seq = last.Seq + rapid.SampledFrom([]int64{1, 1, 0, 0, -1, 2}).Draw(r, "sequence off by")
	if p.Epoch > last.Epoch && chance(r, 2, "from 0") {
		p.Seq = 0
	}
}

func (m *machine) drawSpec(r *rapid.T) tapedeck.Spec {
	s := tapedeck.Spec{ID: drawID(r), Closed: chance(r, 10, "closed"), Origin: rapid.SampledFrom([]string{"", "o"}).Draw(r, "origin")}
	s.Kind = kindOf(s.ID)
	s.Events, s.Chunks = m.drawRecords(r, s.ID, 2)
	// The clock moves by whole seconds, so with half a second it never stops at
	// exactly this time.
	if chance(r, 4, "ttl") {
		s.TTL = 10*time.Second + time.Second/2
	}
	if chance(r, 8, "expires") {
		s.Expires = m.now().Add(15*time.Second + time.Second/2)
	}
	return s
}
