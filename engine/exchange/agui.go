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

// An agui is a log of AG-UI events that is being read. AG-UI has no place for
// what comes outside of a run; where a log begins in the middle, or goes on after
// an end, a run is begun for it. What users say is in the input of the runs.
type agui struct {
	*session
	mender
	threads map[string]string   // by AG-UI's id; "" for the main one
	runs    map[string]openRun  // by AG-UI's id
	had     map[string]struct{} // ids of runs
	now     openRun             // to which events belong that name no run; zero for none
}

type openRun struct{ invocation, thread string }

// aguiLine reads one event, an array of them, or an object with an array events.
func (d *Decoder) aguiLine(rec record) {
	if d.agui == nil {
		a := &agui{
			session: d.newSession(), threads: map[string]string{}, runs: map[string]openRun{}, had: map[string]struct{}{},
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

// event reads an event. It returns why it was left out, "" if it was not.
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
	if a.now.invocation == "" {
		a.begin()
	}
	e.Invocation, e.Thread = a.now.invocation, a.now.thread
	if err := a.add(e); err != nil {
		return err.Error()
	}
	a.know(typ, m)
	return ""
}

// isAGUI reports whether a type is one of AG-UI, as it is or was.
func isAGUI(typ string) bool {
	return !strings.Contains(typ, ".") && (tapedeck.ChannelOf(typ) != "" || strings.HasPrefix(typ, "THINKING_"))
}

// time takes the time of an event. One without it has that of the event before.
func (a *agui) time(raw json.RawMessage) {
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err == nil && ms > 0 && ms < 253402300799000 { // the year 9999
		a.at = time.UnixMilli(int64(math.Floor(ms))).UTC()
	}
}

// know remembers the messages that were streamed: the inputs of later runs have
// them again.
func (a *agui) know(typ string, m tapedeck.Members) {
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

// begin begins a run that the log does not have.
func (a *agui) begin() {
	a.now = openRun{invocation: a.d.options.NewID("inv_")}
	e := payload.NewEvent(payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: a.now.invocation})
	e.Time, e.Invocation = a.at, a.now.invocation
	_ = a.add(e) // its id is new, and it ends what is open
}

func (a *agui) start(e tapedeck.Event, m tapedeck.Members) string {
	native := str(m["runId"])
	r := openRun{invocation: native, thread: a.threadOf(str(m["threadId"]))}
	if _, had := a.had[native]; had || tapedeck.CheckID("", native) != nil {
		r.invocation = a.d.options.NewID("inv_")
		m["runId"] = quoted(r.invocation)
		e.Data = encode(m)
	}
	e.Invocation, e.Thread = r.invocation, r.thread
	in := object(m["input"])
	if err := payload.CheckData(&e); err != nil && in != nil { // its messages may be good all the same
		a.d.skip(a.line, "the run's input is left out: %s", err)
		delete(m, "input")
		e.Data = encode(m)
	}
	a.endBegun()
	a.input(e, in)
	if err := a.add(e); err != nil {
		return err.Error()
	}
	a.had[native], a.had[r.invocation] = struct{}{}, struct{}{}
	a.runs[native], a.now = r, r
	return ""
}

// endBegun ends a run that the log does not have.
func (a *agui) endBegun() {
	if _, named := a.had[a.now.invocation]; named || a.now.invocation == "" {
		return
	}
	e := payload.NewEvent(payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: a.now.invocation})
	e.Invocation, e.Time = a.now.invocation, a.at
	_ = a.add(e) // it is open
	a.now = openRun{}
}

// threadOf returns our thread for one of AG-UI: the first one is the main thread.
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

// input adds the messages of a run's input that were not there yet.
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
		r = a.now
	}
	if r.invocation == "" && e.Type == tapedeck.RunError { // it failed before it began
		a.begin()
		r = a.now
	}
	if named && str(m["runId"]) != r.invocation {
		m["runId"] = quoted(r.invocation)
		e.Data = encode(m)
	}
	e.Invocation, e.Thread = r.invocation, r.thread
	if err := a.add(e); err != nil {
		return err.Error()
	}
	delete(a.runs, str(m["runId"]))
	if a.now == r {
		a.now = a.newest()
	}
	return ""
}

// newest returns the run that was begun last of those that are open.
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
