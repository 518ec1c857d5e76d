package guard_test

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/guard"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/exchange"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A rival is a store in which something else happens in the last moment before a call of an
// identity, the first of them for 1.
type rival struct {
	tapedeck.Store
	of      *access.Identity
	moment  int
	acts    func()
	commits bool // the call was a change
}

func (r *rival) wins(ctx context.Context, commits bool) {
	if access.From(ctx) != r.of || r.acts == nil {
		return
	}
	if r.moment--; r.moment == 0 {
		r.commits = commits
		r.acts()
	}
}

func (r *rival) Head(ctx context.Context, session string) (tapedeck.Session, error) {
	r.wins(ctx, false)
	return r.Store.Head(ctx, session)
}

func (r *rival) Read(ctx context.Context, session string, rg tapedeck.Range) (tapedeck.Page, error) {
	r.wins(ctx, false)
	return r.Store.Read(ctx, session, rg)
}

func (r *rival) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	r.wins(ctx, true)
	return r.Store.Append(ctx, a)
}

func (r *rival) Create(ctx context.Context, s tapedeck.Spec) (tapedeck.Created, error) {
	r.wins(ctx, true)
	return r.Store.Create(ctx, s)
}

func (r *rival) Erase(ctx context.Context, e tapedeck.Erasure) (tapedeck.Erased, error) {
	r.wins(ctx, true)
	return r.Store.Erase(ctx, e)
}

func (r *rival) Delete(ctx context.Context, session string) error {
	r.wins(ctx, true)
	return r.Store.Delete(ctx, session)
}

// A waiter is an agent that asks a question, if its task is "ask", and works until it is
// stopped. In the thread of a workflow it is one.
type waiter struct{}

func (waiter) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		if !yield(tapedeck.Event{Type: tapedeck.Custom, Data: json.RawMessage(`{"name":"n","value":1}`)}, nil) {
			return
		}
		if in.Task == "ask" {
			_, _ = in.Ask(ctx, tapedeck.Question{ID: "q", Message: "may I?", Options: []tapedeck.PermissionOption{{ID: "yes", Name: "Yes", Kind: "allow_once"}}})
		}
		<-ctx.Done()
	}
}

type walker struct{ waiter }

func (walker) Durable() {}

func (walker) Opening(context.Context, tapedeck.Invocation) ([]tapedeck.Event, error) {
	return []tapedeck.Event{{Type: tapedeck.WorkflowStarted, Data: json.RawMessage(`{"digest":"d"}`)}}, nil
}

// A call uses a verb for the session "s", where inputs wait, or creates a session.
type call func(ctx context.Context, v *guard.Guarded, in inputs) error

type inputs struct {
	next    string // begins next
	outside string // waits for an outside program
	file    string // a session to import
}

// changing has calls of each verb that changes a session, by the name of the verb. Each does
// something in the session of [furnish].
var changing = map[string]call{
	"Append": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Append(ctx, message("talk"))
		return err
	},
	"AppendAfter": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		a := message("talk")
		a.Events[0].Thread = "done"
		_, err := v.AppendAfter(ctx, api.Rewind{Session: "s", ToOffset: new(int64(3)), Thread: "done"}, a)
		return err
	},
	"Start again": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Start(ctx, api.Task{Session: "s", Thread: "done", Text: "go", Rewind: &api.Rewind{ToOffset: new(int64(3))}})
		return err
	},
	"Start in place": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Start(ctx, api.Task{Session: "s", Thread: "done", Text: "go", Overwrite: &api.Overwrite{FromOffset: 3, Thread: "done"}})
		return err
	},
	"Rename": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Rename(ctx, api.Rename{Session: "s", Title: new("mine")})
		return err
	},
	"Close": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.CancelAll(ctx, "s", "inv_ask")
		for _, run := range []string{"inv_mine", "inv_walk", "inv_out"} {
			if err == nil {
				_, err = v.Cancel(ctx, "s", run)
			}
		}
		if err == nil {
			err = v.Close(ctx, "s", "")
		}
		return err
	},
	"Delete": func(ctx context.Context, v *guard.Guarded, _ inputs) error { return v.Delete(ctx, "s") },
	"Erase": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Erase(ctx, api.Erase{Session: "s", Events: []tapedeck.OffsetRange{{From: 0, To: 1}}})
		return err
	},
	"Start": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Start(ctx, api.Task{Session: "s", Thread: "new", Text: "go"})
		return err
	},
	"Start, and create": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Start(ctx, api.Task{Session: "s", Thread: "new", Text: "go", Create: true})
		if tapedeck.KindOf(err) == tapedeck.Conflict { // the id is not free
			err = tapedeck.Errorf(tapedeck.NotFound, "%w", err)
		}
		return err
	},
	"Start later": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Start(ctx, api.Task{Session: "s", Text: "go", When: "queue"})
		return err
	},
	"Cancel": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Cancel(ctx, "s", "inv_mine")
		return err
	},
	"CancelAll": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.CancelAll(ctx, "s", "inv_ask")
		return err
	},
	"Renew": func(ctx context.Context, v *guard.Guarded, _ inputs) error { // in memory, for the session that it has read
		_, err := v.Renew(ctx, api.Renewal{Session: "s", Invocation: "inv_out"})
		return err
	},
	"Resume": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Resume(ctx, api.Resume{Session: "s", Thread: "done"})
		return err
	},
	"Answer": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Answer(ctx, api.Answer{Session: "s", Permission: "q", Option: "yes"})
		return err
	},
	"Withdraw": func(ctx context.Context, v *guard.Guarded, in inputs) error {
		_, err := v.Withdraw(ctx, api.Withdraw{Session: "s", Input: in.next})
		return err
	},
	"Move": func(ctx context.Context, v *guard.Guarded, in inputs) error {
		_, err := v.Move(ctx, api.Move{Session: "s", Input: in.next})
		return err
	},
	"Take": func(ctx context.Context, v *guard.Guarded, in inputs) error {
		_, err := v.Take(ctx, api.Take{Session: "s", Input: in.outside, Invocation: "inv_out"})
		return err
	},
	"SendMessage": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.SendMessage(ctx, api.SendMessage{Session: "s", Name: "hello"})
		return err
	},
	"Rewind": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Rewind(ctx, api.Rewind{Session: "s", ToOffset: new(int64(3)), Thread: "done"})
		return err
	},
	"Undo": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Undo(ctx, api.Undo{Session: "s"})
		return err
	},
	"Overwrite": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Overwrite(ctx, api.Overwrite{Session: "s", FromOffset: 3, Thread: "done"})
		return err
	},
	"Clear": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Clear(ctx, api.Clear{Session: "s", Thread: "done"})
		return err
	},
	"Fork": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Fork(ctx, api.Fork{Parent: "s", ID: "f"})
		return err
	},
	"Presence": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Presence(ctx, api.PresenceNote{Session: "s", Action: api.PresenceJoin})
		return err
	},
}

// others are the verbs that change no session that exists, or none at all.
var others = []string{"Create", "Import", "Agents", "Inputs", "Export", "PreviewExport", "PreviewImport", "Present", "WatchPresence"}

// A race is what happens to a session while eve calls a verb.
type race struct {
	shared bool // it is a session of ada that eve may write, and not one of eve
	twin   bool // another session has the id then
	act    func(s tapedeck.Store, revoke func())
	want   tapedeck.Kind
	not    []string // the calls that it does not stop
}

// owners are the verbs that only the owner of a session may use.
var owners = []string{"Close", "Delete", "Erase"}

func (r *race) excepts(call string) bool {
	return slices.Contains(r.not, call) || r.shared && slices.Contains(owners, call)
}

// first returns the first moment that counts: before eve has looked at a session, another one
// that she may use is as good.
func (r *race) first() int {
	if r.twin {
		return 2
	}
	return 1
}

// The names say what happens.
var races = map[string]race{
	"nothing":               {},
	"nothing, it is shared": {shared: true},
	"it is deleted": {
		act: func(s tapedeck.Store, _ func()) { must(s.Delete(context.Background(), "s")) }, want: tapedeck.NotFound, not: []string{"Start, and create"},
	},
	"it becomes one of ada": {twin: true, act: func(s tapedeck.Store, _ func()) { twin(s, "ada", nil) }, want: tapedeck.NotFound},
	"it becomes one of ada that is shared": {
		twin: true, act: func(s tapedeck.Store, _ func()) { twin(s, "ada", map[string]string{api.ShareWrite: "eve"}) },
		want: tapedeck.NotFound, not: []string{"Start, and create"},
	},
	"it becomes another one of eve": {
		twin: true, act: func(s tapedeck.Store, _ func()) { twin(s, "eve", nil) }, want: tapedeck.NotFound, not: []string{"Start, and create"},
	},
	"it is shared no more": {shared: true, act: func(s tapedeck.Store, _ func()) { relabel(s, "") }, want: tapedeck.NotFound},
	"it is shared for reading": {
		shared: true, act: func(s tapedeck.Store, _ func()) { relabel(s, `"`+api.ShareRead+`":"eve"`) }, want: tapedeck.Forbidden, not: []string{"Fork"},
	},
	"the token is revoked":                  {act: func(_ tapedeck.Store, revoke func()) { revoke() }, want: tapedeck.Unauthorized},
	"the token for a shared one is revoked": {shared: true, act: func(_ tapedeck.Store, revoke func()) { revoke() }, want: tapedeck.Unauthorized},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// twin replaces the session s by one with the same events, of another owner.
func twin(s tapedeck.Store, owner string, labels map[string]string) {
	ctx := context.Background()
	var events []tapedeck.Event
	for ev, err := range tapedeck.Events(ctx, s, "s", 0) {
		must(err)
		events = append(events, ev)
	}
	events[0].Data = creation(owner, labels)
	must(s.Delete(ctx, "s"))
	_, err := s.Create(ctx, tapedeck.Spec{ID: "s", Kind: tapedeck.KindSession, Events: events})
	must(err)
}

func creation(owner string, labels map[string]string) json.RawMessage {
	data, err := json.Marshal(map[string]any{"owner": owner, "labels": labels})
	must(err)
	return data
}

// relabel gives the session s only these labels.
func relabel(s tapedeck.Store, labels string) {
	_, err := s.Append(context.Background(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{
		{Type: tapedeck.SessionRenamed, Data: json.RawMessage(`{"labels":{` + labels + `}}`)},
	}})
	must(err)
}

// TestWhoIsAskedInTheCommit: a user who loses a session in the last moment changes nothing in what
// has its id then, with any verb.
func TestWhoIsAskedInTheCommit(t *testing.T) {
	verbs := reflect.TypeFor[guard.Verbs]()
	for i := range verbs.NumMethod() {
		name := verbs.Method(i).Name
		if _, ok := changing[name]; ok == slices.Contains(others, name) {
			t.Errorf("the verb %s is in no list, or in both", name)
		}
	}
	for name, do := range changing {
		for what, r := range races {
			if r.excepts(name) {
				continue
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				for moment := r.first(); r.run(t, do, moment); moment++ {
				}
			})
		}
	}
}

// A scene is a server in which eve does something, and something else happens at a moment of that.
type scene struct {
	*rival
	*engine.Engine
	guarded *guard.Guarded
	eve     context.Context // of her calls
	revoke  func()          // her token
}

func newScene(t *testing.T, moment int) *scene {
	revoked, revoke := context.WithCancel(t.Context())
	who := &access.Identity{Subject: "eve", Role: access.User, Revoked: revoked}
	s := &scene{rival: &rival{Store: memory.New(memory.Options{}), of: who, moment: moment}, revoke: revoke}
	h := hub.New(s.rival)
	s.Engine = engine.New(engine.Options{Store: h, Agents: []engine.Agent{
		{Agent: tapedeck.Agent{Name: "bot"}, Runner: waiter{}}, {Agent: tapedeck.Agent{Name: "walker"}, Runner: walker{}},
	}})
	g := guard.New(guard.Options{Store: h, Verbs: s.Engine, Drives: s.Drives})
	h.Observe(g.Observer())
	s.guarded, s.eve = g.Verbs, access.With(t.Context(), who)
	t.Cleanup(func() {
		_ = s.Shutdown(context.Background())
		revoke()
	})
	return s
}

// run lets eve call a verb, and something else happen at a moment of that. It returns whether
// there was that moment.
func (r race) run(t *testing.T, do call, moment int) (happened bool) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, moment)
		labels := map[string]string{api.PresenceLabel: api.PresenceStored}
		owner := "eve"
		if r.shared {
			owner, labels[api.ShareWrite] = "ada", "eve"
		}
		input := furnish(t, s.Engine, owner, labels)
		after := int64(-1)
		if r.act != nil {
			s.acts = func() {
				r.act(s.Store, s.revoke)
				now, _ := s.Store.Head(t.Context(), "s")
				happened, after = true, now.Head
			}
		}
		err := do(s.eve, s.guarded, input)
		synctest.Wait()
		if !happened {
			if err != nil {
				t.Errorf("without a race: %v", err)
			}
			return
		}
		k := tapedeck.KindOf(err)
		if k != r.want && (s.commits || err != nil && k != tapedeck.Conflict) {
			t.Errorf("at moment %d: got %v, want %q", moment, err, r.want)
		}
		for ev, err := range tapedeck.Events(t.Context(), s.Store, "s", after) {
			// A run that she stopped before may end after the act, but not in a twin. What waits in a twin may begin.
			hers := strings.Contains(ev.Actor, "eve") || r.twin && (slices.Contains(runs, ev.Invocation) || ev.Type == payload.TypeInputWithdrawn)
			if err == nil && hers {
				t.Errorf("at moment %d: a later event is %s of %s %s", moment, ev.Type, ev.Actor, ev.Data)
			}
		}
		if _, err := s.Store.Head(t.Context(), "f"); s.commits && tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("at moment %d: there is a fork: %v", moment, err)
		}
		if people, _ := s.Present(t.Context(), "s"); s.commits && len(people) > 0 {
			t.Errorf("at moment %d: there are people: %v", moment, people)
		}
	})
	return happened
}

// creating has calls that create a session n.
var creating = map[string]call{
	"Create": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Create(ctx, api.NewSession{ID: "n"})
		return err
	},
	"Start": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Start(ctx, api.Task{Session: "n", Create: true, Text: "go"})
		return err
	},
	"Start, unnamed": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Start(ctx, api.Task{Text: "go"})
		return err
	},
	"Fork": func(ctx context.Context, v *guard.Guarded, _ inputs) error {
		_, err := v.Fork(ctx, api.Fork{Parent: "s", ID: "n"})
		return err
	},
	"Import": func(ctx context.Context, v *guard.Guarded, in inputs) error {
		_, err := v.Import(ctx, api.ImportRequest{Format: exchange.NDJSON}, strings.NewReader(in.file))
		return err
	},
}

// TestWhoIsAskedInTheCreation: a user who loses an id, or the token, in the last moment creates
// nothing and joins nothing.
func TestWhoIsAskedInTheCreation(t *testing.T) {
	for name, do := range creating {
		for what, shared := range map[string]bool{"ada creates it": false, "ada creates it for both": true} {
			t.Run(name+"/"+what, func(t *testing.T) {
				for moment := 1; created(t, do, moment, func(s *scene) (tapedeck.Kind, bool) {
					labels := map[string]string{}
					if shared {
						labels[api.ShareWrite] = "eve"
					}
					_, err := s.Engine.Create(t.Context(), api.NewSession{ID: "n", Owner: "ada", Labels: labels})
					// She may be late. An import takes another id, and a task is for what is there.
					return tapedeck.Conflict, err != nil || name == "Import" || name == "Start, unnamed" || shared && name == "Start"
				}); moment++ {
				}
			})
		}
		t.Run(name+"/the token is revoked", func(t *testing.T) {
			for moment := 1; created(t, do, moment, func(s *scene) (tapedeck.Kind, bool) {
				s.revoke()
				return tapedeck.Unauthorized, false
			}); moment++ {
			}
		})
	}
}

// created lets eve create a session, and something else happen at a moment of that. It returns
// whether there was that moment.
func created(t *testing.T, do call, moment int, act func(*scene) (tapedeck.Kind, bool)) (happened bool) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, moment)
		_, err := s.Engine.Create(t.Context(), api.NewSession{ID: "s", Owner: "eve"})
		must(err)
		other := newScene(t, 0)
		_, err = other.Engine.Create(t.Context(), api.NewSession{ID: "n"})
		must(err)
		file, err := other.Export(t.Context(), api.ExportRequest{Session: "n", Format: exchange.NDJSON})
		must(err)
		var text strings.Builder
		must(file.Write(&text))
		var want tapedeck.Kind
		may, before := false, 0
		s.acts = func() {
			want, may = act(s)
			happened, before = true, sessions(s)
		}
		err = do(s.eve, s.guarded, inputs{file: text.String()})
		synctest.Wait()
		switch k := tapedeck.KindOf(err); {
		case !happened && err != nil:
			t.Errorf("without a race: %v", err)
		case !happened || may && err == nil:
		case k != want && (s.commits || err != nil):
			t.Errorf("at moment %d: got %v, want %q", moment, err, want)
		case err != nil && sessions(s) > before:
			t.Errorf("at moment %d: there are %d sessions, and there were %d", moment, sessions(s), before)
		}
		if n, err := s.Store.Head(t.Context(), "n"); err == nil && n.Owner == "ada" && n.Head != 1 && !may {
			t.Errorf("at moment %d: the session of ada is at %d", moment, n.Head)
		}
	})
	return happened
}

func sessions(s *scene) int {
	all, err := s.List(context.Background(), tapedeck.Filter{})
	must(err)
	return len(all.Sessions)
}

// furnish makes a session in which each verb has something to do.
func furnish(t *testing.T, e *engine.Engine, owner string, labels map[string]string) inputs {
	ctx := t.Context()
	_, err := e.Create(ctx, api.NewSession{ID: "s", Owner: owner, Labels: labels})
	must(err)
	for _, task := range []api.Task{
		{Thread: "done", Text: "go", Invocation: "inv_done"}, {Text: "ask", Invocation: "inv_ask"},
		{Text: "one", When: "queue"}, {Text: "two", When: "queue"},
		{Thread: "mine", Text: "go", Invocation: "inv_mine"}, {Thread: "walk", Agent: "walker", Text: "go", Invocation: "inv_walk"},
	} {
		task.Session = "s"
		_, err := e.Start(ctx, task)
		must(err)
		synctest.Wait()
		if task.Invocation == "inv_done" {
			_, err := e.Cancel(ctx, "s", "inv_done")
			must(err)
		}
	}
	outside := payload.NewEvent(payload.RunStarted{ThreadID: "outside", RunID: "inv_out"})
	outside.Thread, outside.Invocation = "outside", "inv_out"
	_, err = e.Append(ctx, tapedeck.Append{Session: "s", Events: []tapedeck.Event{outside}})
	must(err)
	theirs, err := e.Start(ctx, api.Task{Session: "s", Thread: "outside", Text: "three", When: "queue"})
	must(err)
	late, err := e.Append(ctx, message("done"))
	must(err)
	_, err = e.Rewind(ctx, api.Rewind{Session: "s", Thread: "done", ToOffset: &late.First})
	must(err)
	waiting, err := e.Inputs(ctx, "s", "main")
	must(err)
	return inputs{next: waiting[0].ID, outside: theirs.Input}
}

// runs are those that furnish leaves open.
var runs = []string{"inv_ask", "inv_mine", "inv_walk", "inv_out"}

func message(thread string) tapedeck.Append {
	ev := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m_"+thread, payload.RoleUser, "hi")})
	ev.Thread = thread
	return tapedeck.Append{Session: "s", Events: []tapedeck.Event{ev}}
}
