// Package viewtest writes random logs for tests of folds. The same seed gives
// the same log on every machine, so that folds in two languages, or along two
// paths, can be compared.
package viewtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Options control the content of a log. Each share is a probability per step,
// from 0 to 1.
type Options struct {
	Events  int     // number of events, at least 1
	Threads int     // number of parallel conversations, at least 1
	Jumps   float64 // rewinds, overwrites and clears
	Retries float64 // steps that a run repeats
	Near    int64   // distance of most jumps; 0 for any
	Undos   float64 // share of jumps that go to the newest jump, that is, undo it
	Repeats float64 // ids that are used again, soon or long after their first use
	Restate float64 // MESSAGES_SNAPSHOT
	Wild    float64 // events in any order, and data of any shape
	Other   float64 // events of types that no turn has, such as session.forked
	Erased  float64 // events whose payload is erased
}

// Varied returns options that differ from seed to seed, so that the logs of many
// seeds have everything that a fold must handle. One log in eight is long, so
// that messages settle in it.
func Varied(seed uint64) Options {
	o := Options{Events: 60, Threads: 1 + int(seed%3), Undos: .3, Other: .03}
	switch seed % 8 {
	case 0:
		o.Other = .3
	case 1:
		o.Jumps, o.Retries = .05, .05
	case 2:
		o.Wild = .5
	case 3:
		o.Retries = .1
		o.Repeats, o.Restate = .1, .1
	case 4:
		o.Erased, o.Jumps, o.Retries = .2, .03, .03
	case 5:
		o.Wild, o.Jumps, o.Repeats, o.Restate, o.Retries = .2, .03, .05, .03, .05
	case 6:
		o.Wild = 1
	case 7:
		o.Events, o.Restate, o.Repeats, o.Jumps, o.Near, o.Other, o.Retries = 1_500, .01, .02, .002, 300, .002, .01
	}
	return o
}

// Log returns the log of a seed. Its first event is a session.created.
func Log(seed uint64, o Options) []tapedeck.Event {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 1)), o: o, at: time.UnixMilli(1_700_000_000_000).UTC()}
	for i := range max(1, o.Threads) {
		w.lanes = append(w.lanes, &lane{name: laneName(i)})
	}
	w.add(nil, tapedeck.SessionCreated, `{"title":"Log %d","state":{"n":0,"list":[]}}`, seed)
	for len(w.events) < o.Events {
		w.step()
	}
	for i := range w.events {
		if w.chance(o.Erased) {
			w.erase(i)
		}
	}
	return w.events
}

func laneName(i int) string {
	if i == 0 {
		return tapedeck.MainThread
	}
	return fmt.Sprint("side", i)
}

type writer struct {
	*rand.Rand
	o        Options
	events   []tapedeck.Event
	at       time.Time
	lanes    []*lane
	said     []string // ids of messages
	lastJump int64
	ids      int
}

// A lane is the state of one thread: its open run and its next steps.
type lane struct {
	name  string
	run   string
	began int64 // offset of the newest RUN_STARTED
	next  []draft
	said  []string // whole messages, for a MESSAGES_SNAPSHOT
}

type draft struct{ typ, data string }

func (w *writer) chance(p float64) bool { return w.Float64() < p }

func (w *writer) id(prefix string) string {
	w.ids++
	return fmt.Sprint(prefix, w.ids)
}

// add appends an event of a lane, or of the session if l is nil.
func (w *writer) add(l *lane, typ, format string, args ...any) {
	if len(w.events) >= max(1, w.o.Events) {
		return
	}
	w.at = w.at.Add(time.Duration(w.IntN(2000)) * time.Millisecond)
	e := tapedeck.Event{Offset: int64(len(w.events)), Type: typ, Channel: tapedeck.ChannelOf(typ), Time: w.at}
	e.Data = json.RawMessage(fmt.Sprintf(format, args...))
	if l != nil {
		e.Invocation = l.run
		if e.Thread = l.name; l.name == tapedeck.MainThread && w.chance(.5) {
			e.Thread = "" // means the same
		}
		if e.Channel == "" {
			e.Channel = tapedeck.ChannelAgentState
		}
	}
	w.events = append(w.events, e)
}

func (w *writer) step() {
	l := w.lanes[w.IntN(len(w.lanes))]
	switch {
	case w.chance(w.o.Jumps):
		w.jump(l)
	case w.o.Retries > 0 && w.chance(w.o.Retries):
		w.retry(l)
	case w.chance(w.o.Wild):
		w.wild(l)
	case w.o.Other > 0 && w.chance(w.o.Other):
		w.other(l)
	case w.chance(w.o.Repeats):
		w.repeat(l)
	case w.chance(w.o.Restate):
		w.restate(l)
	case len(l.next) > 0:
		d := l.next[0]
		l.next = l.next[1:]
		if d.typ == tapedeck.RunStarted {
			l.began = int64(len(w.events))
		}
		w.add(l, d.typ, "%s", d.data)
		if d.typ == tapedeck.RunFinished || d.typ == tapedeck.RunError {
			l.run = ""
		}
	case l.run == "":
		w.begin(l)
	default:
		turns[w.IntN(len(turns))](w, l)
	}
}

func (l *lane) say(typ, format string, args ...any) {
	l.next = append(l.next, draft{typ, fmt.Sprintf(format, args...)})
}

// begin opens a run with a user's message.
func (w *writer) begin(l *lane) {
	l.run = w.id("inv_")
	id := w.id("u")
	text := fmt.Sprintf(`{"id":%q,"role":"user","content":"question %d"}`, id, w.ids)
	w.said = append(w.said, id)
	l.said = append(l.said, text)
	l.say(tapedeck.MessageAdded, `{"message":%s}`, text)
	l.say(tapedeck.RunStarted, `{"threadId":%q,"runId":%q,"metadata":{"tapedeck":{"agent":"demo"}}}`, l.name, l.run)
}

// jump reverts the session, or some of its threads.
func (w *writer) jump(l *lane) {
	head := int64(len(w.events))
	to := w.Int64N(head + 1)
	if w.o.Near > 0 && !w.chance(.05) {
		to = max(0, head-w.Int64N(w.o.Near+1))
	}
	if w.lastJump > 0 && w.o.Undos > 0 && w.chance(w.o.Undos) {
		to = w.lastJump
	}
	data := fmt.Sprintf(`"marker":"mark_%d"`, head)
	reverted := []*lane{l}
	switch w.IntN(4) {
	case 0: // all threads
		reverted = w.lanes
	case 1:
		other := w.lanes[w.IntN(len(w.lanes))]
		reverted = append(reverted, other)
		data += fmt.Sprintf(`,"thread":%q,"with":[%q]`, l.name, other.name)
	default:
		data += fmt.Sprintf(`,"thread":%q`, l.name)
	}
	if w.lastJump > 0 {
		data += fmt.Sprintf(`,"previous":%d`, w.lastJump)
	}
	w.lastJump = head
	switch w.IntN(4) {
	case 0:
		w.add(nil, tapedeck.SessionCleared, `{%s}`, data)
	case 1:
		w.add(nil, tapedeck.SessionOverwritten, `{%s,"fromOffset":%d}`, data, to)
	default:
		w.add(nil, tapedeck.SessionRewound, `{%s,"toOffset":%d}`, data, to)
	}
	for _, t := range reverted {
		if w.chance(.9) { // otherwise its agent continues, as an outside one may
			t.run, t.next = "", nil
		}
	}
}

// retry makes the run of a lane repeat what it has done from some offset on.
func (w *writer) retry(l *lane) {
	head := int64(len(w.events))
	if l.run == "" || head-l.began < 2 {
		return
	}
	from := max(l.began+1, head-w.Int64N(min(20, head-l.began)))
	data := fmt.Sprintf(`"fromOffset":%d,"attempt":%d,"reason":"reason %d"`, from, 2+w.IntN(3), head)
	if w.lastJump > 0 {
		data += fmt.Sprintf(`,"previous":%d`, w.lastJump)
	}
	w.lastJump = head
	w.add(l, tapedeck.AttemptSuperseded, `{%s}`, data)
	if w.chance(.8) { // otherwise the new attempt continues what the old one began
		l.next = nil
	}
}

// repeat uses the id of a message again, for a message of any kind, or answers a call again,
// too early, or that nobody makes.
func (w *writer) repeat(l *lane) {
	if len(w.said) == 0 {
		return
	}
	id := w.said[w.IntN(len(w.said))]
	if w.chance(.5) {
		id = w.said[max(0, len(w.said)-1-w.IntN(20))]
	}
	if w.chance(.6) {
		w.add(l, tapedeck.MessageAdded, `{"message":{"id":%q,"role":"user","content":"again %d"}}`, id, len(w.events))
		return
	}
	role := "assistant"
	switch w.IntN(8) {
	case 0:
		role = "user"
	case 1:
		w.add(l, tapedeck.ReasoningMessageStart, `{"messageId":%q,"role":"reasoning"}`, id)
		w.add(l, tapedeck.ReasoningMessageContent, `{"messageId":%q,"delta":"hm %d"}`, id, len(w.events))
		return
	case 2:
		w.add(l, tapedeck.ActivitySnapshot, `{"messageId":%q,"activityType":"X","content":{"n":%d}}`, id, len(w.events))
		return
	case 3:
		w.add(l, tapedeck.ToolCallResult, `{"toolCallId":"c%d","messageId":%q,"content":"again"}`, max(1, w.ids+5-w.IntN(20)), id)
		return
	}
	w.add(l, tapedeck.TextMessageStart, `{"messageId":%q,"role":%q}`, id, role)
	w.add(l, tapedeck.TextMessageContent, `{"messageId":%q,"delta":"again %d"}`, id, len(w.events))
	if w.chance(.8) {
		w.add(l, tapedeck.TextMessageEnd, `{"messageId":%q}`, id)
	}
}

// restate adds a MESSAGES_SNAPSHOT with all messages of the lane, or with the
// newest.
func (w *writer) restate(l *lane) {
	said := l.said
	if w.chance(.7) {
		said = said[w.IntN(len(said)+1):]
	}
	list := "["
	for i, m := range said {
		if w.chance(.02) {
			continue
		}
		if i > 0 && list != "[" {
			list += ","
		}
		list += m
	}
	w.add(l, tapedeck.MessagesSnapshot, `{"messages":%s]}`, list)
}

// erase erases the payload of an event as a store does.
func (w *writer) erase(i int) {
	e := &w.events[i]
	if _, isJump := e.Jump(); isJump || i == 0 {
		return
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	r, err := store.EraseRecord(tapedeck.Record{Offset: e.Offset, Data: b})
	if err == nil {
		*e, err = r.Event()
	}
	if err != nil {
		panic(err)
	}
}
