package exchange

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// An agui reads a log of AG-UI events. AG-UI has no place for events outside a
// run. Where a log begins in the middle, or continues after an end, agui begins a
// run. The messages of users are in the input of runs.
type agui struct {
	*session
	mender
	threads  map[string]string   // by the id of AG-UI; "" for the main one
	runs     map[string]openRun  // by the id of AG-UI
	seenRuns map[string]struct{} // ids of runs
	current  openRun             // the run of events that name none; zero for none
}

type openRun struct{ invocation, thread string }

// aguiLine reads one event, an array of them, or an object with an array events.
func (d *Decoder) aguiLine(rec record) {
	if d.agui == nil {
		a := &agui{
			session: d.newSession(), threads: map[string]string{}, runs: map[string]openRun{}, seenRuns: map[string]struct{}{},
		}
		a.mender = mender{verifier: order.NewVerifier(), emit: a.put}
		d.agui = a
	}
	d.agui.read(rec)
	items, ok := list(rec.raw)
	if !ok {
		items, ok = list(object(rec.raw)["events"])
	}
	if !ok {
		items = []json.RawMessage{rec.raw}
	}
	for i, raw := range items {
		if d.stopped {
			return
		}
		if why := d.agui.event(raw); why != "" && ok {
			d.skip(rec.line, "event %d: %s", i+1, why)
		} else if why != "" {
			d.skip(rec.line, "%s", why)
		}
	}
}

func (a *agui) put(e tapedeck.Event) {
	a.create()
	a.events++
	a.d.emit(e)
}

// event reads an event. It returns why the event was skipped, "" if it was not.
func (a *agui) event(raw json.RawMessage) string {
	m := unframed(raw)
	typ, ok := text(m["type"])
	switch {
	case m == nil:
		return "it is not an object"
	case !ok:
		return "it has no type"
	}
	a.time(m["timestamp"])
	delete(m, "type")
	e := tapedeck.Event{Type: typ, Time: a.at, Data: encode(m)}
	if err := e.Check(); err != nil {
		return err.Error()
	}
	if !isAGUI(typ) {
		return "an event of type " + string(quoted(short(typ))) + " is not one of AG-UI"
	}
	switch typ {
	case tapedeck.RunStarted:
		return a.start(e, m)
	case tapedeck.RunFinished, tapedeck.RunError:
		return a.finishRun(e, m)
	}
	if a.current.invocation == "" {
		a.begin()
	}
	e.Invocation, e.Thread = a.current.invocation, a.current.thread
	if err := a.accept(e); err != nil {
		return err.Error()
	}
	a.rememberMessages(typ, m)
	return ""
}

// isAGUI reports whether a type is one of AG-UI, in this or an older version.
func isAGUI(typ string) bool {
	return !strings.Contains(typ, ".") && (tapedeck.ChannelOf(typ) != "" || strings.HasPrefix(typ, "THINKING_"))
}

// time sets the time of the session to that of an event. An event without a time
// has that of the event before.
func (a *agui) time(raw json.RawMessage) {
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err == nil && ms > 0 && ms < 253402300799000 { // the year 9999
		a.at = time.UnixMilli(int64(math.Floor(ms))).UTC()
	}
}

// rememberMessages records the messages that were streamed, because the inputs of
// later runs repeat them.
func (a *agui) rememberMessages(typ string, m tapedeck.Members) {
	if id := str(m["messageId"]); id != "" {
		a.used[id] = struct{}{}
	}
	if typ != tapedeck.MessagesSnapshot {
		return
	}
	messages, _ := list(m["messages"])
	for _, raw := range messages {
		a.suggestFrom([]json.RawMessage{raw})
		a.used[str(object(raw)["id"])] = struct{}{}
	}
}

// begin begins a run that is missing in the log.
func (a *agui) begin() {
	a.current = openRun{invocation: a.d.options.NewID("inv_")}
	e := payload.NewEvent(payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: a.current.invocation})
	e.Time, e.Invocation = a.at, a.current.invocation
	_ = a.accept(e) // it cannot fail: its id is new, and the run before has ended
}

func (a *agui) start(e tapedeck.Event, m tapedeck.Members) string {
	native := str(m["runId"])
	r := openRun{invocation: native, thread: a.threadOf(str(m["threadId"]))}
	if _, had := a.seenRuns[native]; had || tapedeck.CheckID("", native) != nil {
		r.invocation = a.d.options.NewID("inv_")
		m["runId"] = quoted(r.invocation)
		e.Data = encode(m)
	}
	e.Invocation, e.Thread = r.invocation, r.thread
	in := object(m["input"])
	if err := payload.CheckData(&e); err != nil && in != nil { // its messages may still be valid
		a.d.skip(a.line, "the run's input is left out: %s", err)
		delete(m, "input")
		e.Data = encode(m)
	}
	a.endBegun()
	a.input(e, in)
	if err := a.accept(e); err != nil {
		return err.Error()
	}
	a.seenRuns[native], a.seenRuns[r.invocation] = struct{}{}, struct{}{}
	a.runs[native], a.current = r, r
	return ""
}

// endBegun ends a run that is missing in the log.
func (a *agui) endBegun() {
	if _, named := a.seenRuns[a.current.invocation]; named || a.current.invocation == "" {
		return
	}
	e := payload.NewEvent(payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: a.current.invocation})
	e.Invocation, e.Time = a.current.invocation, a.at
	_ = a.accept(e) // it cannot fail: the run is open
	a.current = openRun{}
}

// threadOf returns the thread for a threadId of AG-UI. The first one is the main
// thread.
func (a *agui) threadOf(native string) string {
	thread, ok := a.threads[native]
	switch {
	case ok:
		return thread
	case len(a.threads) == 0:
	case tapedeck.CheckID("", native) == nil && native != tapedeck.MainThread:
		thread = native
	default:
		thread = "thread_" + strconv.Itoa(len(a.threads)+1)
	}
	a.threads[native] = thread
	return thread
}

// input adds the new messages of a run's input.
func (a *agui) input(e tapedeck.Event, in tapedeck.Members) {
	messages, _ := list(in["messages"])
	a.suggestFrom(messages)
	for _, raw := range messages {
		id := str(object(raw)["id"])
		if _, known := a.used[id]; known || id == "" {
			continue
		}
		one := e
		one.Type, one.Data = tapedeck.MessageAdded, encode(tapedeck.Members{"message": raw})
		if err := payload.CheckData(&one); err != nil {
			a.d.skip(a.line, "a message of the run's input: %s", err)
			continue
		}
		a.used[id] = struct{}{}
		a.put(one)
	}
}

func (a *agui) finishRun(e tapedeck.Event, m tapedeck.Members) string {
	r, named := a.runs[str(m["runId"])]
	if !named {
		r = a.current
	}
	if r.invocation == "" && e.Type == tapedeck.RunError { // it failed before it began
		a.begin()
		r = a.current
	}
	if named && str(m["runId"]) != r.invocation {
		m["runId"] = quoted(r.invocation)
		e.Data = encode(m)
	}
	e.Invocation, e.Thread = r.invocation, r.thread
	if err := a.accept(e); err != nil {
		return err.Error()
	}
	delete(a.runs, str(m["runId"]))
	if a.current == r {
		a.current = a.newest()
	}
	return ""
}

// newest returns the open run that began last.
func (a *agui) newest() openRun {
	open := a.verifier.Runs()
	if len(open) == 0 {
		return openRun{}
	}
	r := openRun{open[len(open)-1].Invocation, open[len(open)-1].Thread}
	if r.thread == tapedeck.MainThread {
		r.thread = ""
	}
	return r
}
