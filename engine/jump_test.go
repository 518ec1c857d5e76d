package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// echo repeats its task and keeps it in the state. It stops in the middle of its
// message if the task is to wait or to fail, and begins twice if it is to try again.
func echo(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	word := in.Task[strings.LastIndex(in.Task, "\n")+1:]
	if word, ok := strings.CutPrefix(word, "again"); ok {
		say("STATE_SNAPSHOT", fmt.Sprintf(`{"snapshot":"wrong %s"}`, word))
		say("TEXT_MESSAGE_START", fmt.Sprintf(`{"messageId":"w_%s"}`, in.ID))
		say("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":"w_%s","delta":"wrong %s"}`, in.ID, word))
		say("attempt.superseded", `{"reason":"it was wrong"}`)
	}
	say("TEXT_MESSAGE_START", fmt.Sprintf(`{"messageId":"m_%s"}`, in.ID))
	say("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":"m_%s","delta":"re %s"}`, in.ID, word))
	switch {
	case strings.HasPrefix(word, "wait"):
		<-ctx.Done()
		return ctx.Err()
	case strings.HasPrefix(word, "fail"):
		return errors.New("out of order")
	}
	say("TEXT_MESSAGE_END", fmt.Sprintf(`{"messageId":"m_%s"}`, in.ID))
	say("STATE_SNAPSHOT", fmt.Sprintf(`{"snapshot":%q}`, word))
	return nil
}

// A tape is a session that is driven by lines of words.
type tape struct {
	*world
	id          string
	invocations map[string]string // by the first word of their task
	markers     []string          // from 1
	last        api.Rewound
}

func (w *world) tape(id string) *tape {
	return &tape{world: w, id: id, invocations: map[string]string{}, markers: []string{""}}
}

// do carries out a line such as "task a on t", "rewind before a", "rewind to 5",
// "replace to 5 by c", "undo 1", "clear on t", "overwrite from 3", "fork f at 4", "cancel a".
func (p *tape) do(line string) error {
	ctx := context.Background()
	words := strings.Fields(line)
	thread := ""
	if i := slices.Index(words, "on"); i > 0 {
		thread, words = words[i+1], words[:i]
	}
	arg := words[len(words)-1]
	number := func() int64 {
		n, err := strconv.ParseInt(arg, 10, 64)
		p.must(err)
		return n
	}
	var err error
	switch words[0] {
	case "task":
		err = p.started(p.Start(ctx, api.Task{Session: p.id, Thread: thread, Text: arg}))(arg)
	case "replace":
		r := api.Rewind{Force: true}
		if words[1] == "before" {
			r.BeforeInvocation = p.invocations[words[2]]
		} else {
			n, err := strconv.ParseInt(words[2], 10, 64)
			p.must(err)
			r.ToOffset = &n
		}
		err = p.started(p.Start(ctx, api.Task{Session: p.id, Thread: thread, Text: arg, Rewind: &r}))(arg)
	case "resume":
		err = p.started(p.Resume(ctx, api.Resume{Session: p.id, Thread: thread}))(arg)
	case "cancel":
		_, err = p.Cancel(ctx, p.id, p.invocations[arg])
	case "close":
		err = p.Close(ctx, p.id, "")
	case "fork":
		_, err = p.Fork(ctx, api.Fork{Parent: p.id, ID: words[1], At: new(number())})
		p.id = words[1]
	case "clear":
		err = p.jumped(p.Clear(ctx, api.Clear{Session: p.id, Thread: thread, Actor: "user:ada"}))
	case "overwrite":
		err = p.jumped(p.Overwrite(ctx, api.Overwrite{Session: p.id, Thread: thread, FromOffset: number(), Force: true}))
	case "undo":
		u := api.Undo{Session: p.id}
		if len(words) > 1 {
			u.Marker = p.markers[number()]
		}
		err = p.jumped(p.Undo(ctx, u))
	case "rewind":
		r := api.Rewind{Session: p.id, Thread: thread, Force: true} // TestRewindGoesOnlyBack is without
		if words[1] == "before" {
			r.BeforeInvocation = p.invocations[arg]
		} else {
			r.ToOffset = new(number())
		}
		err = p.jumped(p.Rewind(ctx, r))
	default:
		p.Fatalf("unknown line %q", line)
	}
	return err
}

func (p *tape) started(s api.Started, err error) func(string) error {
	return func(word string) error {
		p.invocations[word] = s.Invocation
		return err
	}
}

func (p *tape) jumped(r api.Rewound, err error) error {
	p.last = r
	if err == nil {
		p.markers = append(p.markers, r.Marker)
	}
	return err
}

// play carries out lines that are separated by semicolons.
func (p *tape) play(script string) {
	p.Helper()
	for line := range strings.SplitSeq(script, ";") {
		if err := p.do(strings.TrimSpace(line)); err != nil {
			p.Fatalf("%s: %v", line, err)
		}
		synctest.Wait()
	}
}

// inForce is the rule of [tapedeck.Jump] in its simplest form: it lists the active
// events before each event.
func inForce(events []tapedeck.Event, thread string) []tapedeck.Event {
	before := make([][]tapedeck.Event, len(events)+1)
	for i, ev := range events {
		before[i+1] = before[i]
		if j, ok := ev.Jump(); ok && (j.Thread == "" || j.Thread == thread) {
			before[i+1] = before[j.To]
		} else if ev.Channel != tapedeck.ChannelSession && ev.ThreadName() == thread {
			before[i+1] = append(slices.Clone(before[i]), ev)
		}
	}
	return before[len(events)]
}

// shown returns the text of the threads with active events, and their state.
func (p *tape) shown() string {
	p.Helper()
	events := p.log(p.id)
	var threads []string
	for _, ev := range events {
		if name := ev.ThreadName(); ev.Channel != tapedeck.ChannelSession && !slices.Contains(threads, name) {
			threads = append(threads, name)
		}
	}
	var all []string
	for _, name := range threads {
		if said := story(inForce(events, name)); said != "" {
			all = append(all, name+": "+said)
		}
	}
	return strings.Join(all, "; ")
}

func story(events []tapedeck.Event) string {
	var said []string
	state := ""
	for _, ev := range events {
		var d struct {
			Message  struct{ Content string }
			Delta    string
			Snapshot string
		}
		_ = json.Unmarshal(ev.Data, &d)
		if text := d.Message.Content + d.Delta; text != "" {
			said = append(said, text)
		}
		if d.Snapshot != "" {
			state = " {" + d.Snapshot + "}"
		}
	}
	return strings.Join(said, ", ") + state
}

// log returns the events of a session, which may be a fork.
func (w *world) log(session string) []tapedeck.Event {
	w.Helper()
	var events []tapedeck.Event
	for ev, err := range tapedeck.Events(context.Background(), w.store, session, 0) {
		w.must(err)
		events = append(events, ev)
	}
	return events
}

// A task of [echo] takes 7 events from its message to its end: the first one
// begins at offset 1, the second one at 8, the third one at 15.
var jumpTests = []struct {
	name, script, want string
	status             tapedeck.Status
}{
	{"rewind", "task a; task b; rewind before b", "main: a, re a {a}", "complete"},
	{"the first", "task a; task b; rewind before a", "", "idle"},
	{"then continue", "task a; task b; rewind before b; task c", "main: a, re a, c, re c {c}", "complete"},
	{"twice", "task a; task b; task c; rewind before c; rewind before b", "main: a, re a {a}", "complete"},
	{"twice the same", "task a; task b; rewind before b; task c; rewind before b", "main: a, re a {a}", "complete"},
	{"a dead one", "task a; task b; task c; rewind before b; task d; rewind before c", "main: a, re a, b, re b {b}", "complete"},
	{"replaced", "task a; task b; task c; replace before b by d", "main: a, re a, d, re d {d}", "complete"},
	{"replaced by a question", "task a; task b; replace to 8 by wait; cancel wait", "main: a, re a, wait, re wait {a}", "cancelled"},
	{"replaced twice", "task a; replace before a by b; replace before b by c", "main: c, re c {c}", "complete"},
	{"replaced, undo", "task a; task b; replace before b by c; undo", "main: a, re a, b, re b {b}", "complete"},
	{"replaced on a thread", "task a; task b on t; replace before b by c on t", "main: a, re a {a}; t: c, re c {c}", "complete"},
	{"replaced while another one runs", "task wait on t; task a; replace before a by b", "t: wait, re wait; main: b, re b {b}", "running"},
	{"replaced in a fork", "task a; task b; fork f at 15; replace before b by c", "main: a, re a, c, re c {c}", "complete"},
	{"undo", "task a; task b; rewind before a; undo", "main: a, re a, b, re b {b}", "complete"},
	{"undo with later events", "task a; rewind before a; task b; undo", "main: a, re a {a}", "complete"},
	{"undo of undo", "task a; task b; rewind before b; undo; undo", "main: a, re a {a}", "complete"},
	{"undo an older one", "task a; task b; rewind before b; rewind before a; undo 1", "main: a, re a, b, re b {b}", "complete"},
	{"undo of the newest two", "task a; task b; rewind before b; rewind before a; undo 2; undo 1", "main: a, re a, b, re b {b}", "complete"},
	{"clear", "task a; clear; task b", "main: b, re b {b}", "complete"},
	{"clear, undo", "task a; task b; clear; undo", "main: a, re a, b, re b {b}", "complete"},
	{"overwrite", "task a; task b; overwrite from 8; task c", "main: a, re a, c, re c {c}", "complete"},
	{"overwrite nothing", "task a; overwrite from 8; task b", "main: a, re a, b, re b {b}", "complete"},
	{"to an offset", "task a; task b; rewind to 8", "main: a, re a {a}", "complete"},
	{"to the beginning", "task a; rewind to 0", "", "idle"},
	{"in the middle of a message", "task a; task b; rewind to 12", "main: a, re a, b, re b {a}", "interrupted"},
	{"then continue from there", "task a; task b; rewind to 12; task c", "main: a, re a, b, re b, c, re c {c}", "complete"},
	{"a failed one", "task a; task fail; rewind before fail", "main: a, re a {a}", "complete"},
	{"back to a failed one", "task fail; task b; rewind before b", "main: fail, re fail", "failed"},
	{"back to a cancelled one", "task wait; cancel wait; task b; rewind before b", "main: wait, re wait", "cancelled"},
	{"one that runs", "task a; task wait; rewind before wait", "main: a, re a {a}", "complete"},
	{"one that runs, to its middle", "task wait; rewind to 5", "main: wait, re wait", "interrupted"},
	{"all that run", "task wait1; task wait2 on t; rewind to 0", "", "idle"},
	{"one thread", "task a; task b on t; rewind before a on main", "t: b, re b {b}", "complete"},
	{"the other thread", "task a; task fail on t; rewind to 0 on t", "main: a, re a {a}", "complete"},
	{"both, one by one", "task a; task b on t; rewind to 0 on t; rewind to 0 on main", "", "idle"},
	{"all, then undo one", "task a; task b on t; clear; rewind to 15 on t", "t: b, re b {b}", "complete"},
	{"one that runs on a thread", "task wait; task b on t; rewind to 0 on t", "main: wait, re wait", "running"},
	{"only those of the thread", "task wait1; task wait2 on t; rewind before wait2 on t", "main: wait1, re wait1", "running"},
	{"clear a thread, undo", "task a; task b on t; clear on t; undo", "main: a, re a {a}; t: b, re b {b}", "complete"},
	{"the middle on a thread", "task fail; task b on t; rewind to 11 on t", "main: fail, re fail; t: b, re b", "interrupted"},
	{"the older failed, the newer rewound", "task fail; task b on t; clear on t", "main: fail, re fail", "failed"},
	{"a cut on a thread, and then another thread", "task a on t; task fail; rewind to 5 on t; task b on u; clear on u", "t: a, re a; main: fail, re fail", "interrupted"},
	{"a fork", "task a; task b; fork f at 8", "main: a, re a {a}", "complete"},
	{"a fork of a run", "task a; task b; fork f at 11; task c", "main: a, re a, b, c, re c {c}", "complete"},
	{"a fork of the rewound", "task a; task b; rewind before b; fork f at 16", "main: a, re a {a}", "complete"},
	{"a fork from before the rewind", "task a; task b; rewind before b; fork f at 15", "main: a, re a, b, re b {b}", "complete"},
	{"undo in a fork", "task a; task b; rewind before b; fork f at 16; undo", "main: a, re a, b, re b {b}", "complete"},
	{"rewind in a fork", "task a; task b; fork f at 15; rewind before a", "", "idle"},
	{"a fork of a fork", "task a; task b; rewind before b; fork f at 16; task c; rewind before c; fork g at 25; undo; undo 1", "main: a, re a, b, re b {b}", "complete"},
	{"a second attempt", "task a; task again", "main: a, re a, again, re again {again}", "complete"},
	{"undo is not for attempts", "task a; task b; rewind before b; task again; undo", "main: a, re a, b, re b {b}", "complete"},
	{"rewind before an attempt", "task a; task again; rewind before again", "main: a, re a {a}", "complete"},
	{"rewind before an attempt, undo", "task again; task b; rewind before again; undo", "main: again, re again, b, re b {b}", "complete"},
	{"to the middle of the first attempt", "task again; rewind to 6", "main: again, wrong  {wrong }", "interrupted"},
	{"to just before the second", "task again; rewind to 7", "main: again", "interrupted"},
	{"attempts on two threads", "task again1 on t; task again2; rewind before again2 on main", "t: again1, re again1 {again1}", "complete"},
	{"a fork after an attempt", "task again; task b; fork f at 11; task again2", "main: again, re again, again2, re again2 {again2}", "complete"},
	{"a fork in the middle of an attempt", "task again; fork f at 6; task b", "main: again, wrong , b, re b {b}", "complete"},
	{"a fork of a fork, from before its own", "task a; task b; rewind before b; fork f at 16; task c; fork g at 12", "main: a, re a, b, re b {a}", "interrupted"},
}

func TestJumps(t *testing.T) {
	for _, tt := range jumpTests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, echo, func(w *world) {
				w.create("s")
				w.tape("s").check(tt.script, tt.want, tt.status)
			})
		})
	}
}

func (p *tape) check(script, want string, status tapedeck.Status) {
	p.Helper()
	p.play(script)
	if got := p.shown(); got != want {
		p.Errorf("got  %s\nwant %s", got, want)
	}
	if s := p.head(p.id); s.Status != status || (s.Resumable != nil) != (status == tapedeck.StatusCancelled) {
		p.Errorf("the status is %s (resumable %v), want %s", s.Status, s.Resumable, status)
	}
}

// The same test over the store that keeps sessions in a file, with the views of a
// server.
func TestJumpsOverSQLite(t *testing.T) {
	store, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h := hub.New(store)
	w := newWorld(t, echo, func(o *engine.Options) {
		o.Store, o.Views = h, projection.New(projection.Options{Store: h, Every: 8})
	})
	w.store.Store = h
	for i, tt := range jumpTests {
		id := fmt.Sprintf("s%d", i)
		w.create(id)
		p := w.tape(id)
		script := strings.NewReplacer("fork f", fmt.Sprintf("fork f%d", i), "fork g", fmt.Sprintf("fork g%d", i)).Replace(tt.script)
		for line := range strings.SplitSeq(script, ";") {
			w.must(p.do(strings.TrimSpace(line)))
			p.settle(h)
		}
		if got := p.shown(); got != tt.want || w.head(p.id).Status != tt.status {
			t.Errorf("%s: got %s (%s)\nwant %s (%s)", tt.name, got, w.head(p.id).Status, tt.want, tt.status)
		}
		p.stopAll()
	}
}

// settle waits until the runs have ended, or have sent everything before they
// wait.
func (p *tape) settle(h *hub.Hub) {
	waiting := map[string]bool{}
	for page, err := range h.Follow(p.Context(), p.id, tapedeck.FollowOptions{}) {
		p.must(err)
		for _, r := range page.Records {
			ev, err := r.Event()
			p.must(err)
			if ev.Type == tapedeck.TextMessageContent && strings.Contains(string(ev.Data), "re wait") {
				waiting[ev.Invocation] = true
			}
		}
		if !slices.ContainsFunc(p.head(p.id).Runs, func(r tapedeck.OpenRun) bool { return !waiting[r.Invocation] }) {
			return
		}
	}
}

func (p *tape) stopAll() {
	for _, r := range p.head(p.id).Runs {
		_, err := p.Cancel(context.Background(), p.id, r.Invocation)
		p.must(err)
	}
}
