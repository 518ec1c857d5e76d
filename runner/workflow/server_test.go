package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/runner/workflow"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// A mortal store loses its connection to the log when the server dies: what the dead
// server writes later goes nowhere.
type mortal struct {
	tapedeck.Store
	alive sync.RWMutex // held while it appends, so that nothing is in flight when it dies
	dead  atomic.Bool
	after atomic.Int64 // appends until it dies; 0 for never
	died  chan struct{}
}

func (m *mortal) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	m.alive.RLock()
	defer m.alive.RUnlock()
	if m.dead.Load() {
		return tapedeck.Appended{}, tapedeck.Errorf(tapedeck.Conflict, "the server is dead")
	}
	if m.after.Load() > 0 && m.after.Add(-1) == 0 {
		m.dead.Store(true)
		close(m.died)
		return tapedeck.Appended{}, tapedeck.Errorf(tapedeck.Conflict, "the server is dead")
	}
	return m.Store.Append(ctx, a)
}

// A server is an engine with the agent flow, which runs workflows, and agents for tasks.
type server struct {
	testing.TB
	*engine.Engine
	log   tapedeck.Store
	store *mortal
	tasks map[string]agent
}

type agent func(ctx context.Context, in tapedeck.Invocation) (text string, err error)

func (f agent) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		text, err := f(ctx, in)
		if err != nil {
			yield(tapedeck.Event{}, err)
			return
		}
		id, _ := json.Marshal(in.ID)
		said, _ := json.Marshal(text)
		for _, ev := range []string{
			`TEXT_MESSAGE_START {"messageId":%s,"role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":%s,"delta":` + strings.ReplaceAll(string(said), "%", "%%") + `}`, `TEXT_MESSAGE_END {"messageId":%s}`,
		} {
			typ, data, _ := strings.Cut(fmt.Sprintf(ev, id), " ")
			if !yield(tapedeck.Event{Type: typ, Data: json.RawMessage(data)}, nil) {
				return
			}
		}
	}
}

// echo says the last line of its task: what comes before says how an earlier run ended.
func echo(_ context.Context, in tapedeck.Invocation) (string, error) {
	return in.Task[strings.LastIndex(in.Task, "\n")+1:], nil
}

func newServer(t testing.TB, tasks map[string]agent) *server {
	return newServerOn(t, memory.New(memory.Options{}), tasks)
}

func newServerOn(t testing.TB, log tapedeck.Store, tasks map[string]agent) *server {
	s := &server{TB: t, log: log, tasks: tasks}
	s.begin(0)
	return s
}

// begin starts an engine on the log; it dies at the given append.
func (s *server) begin(after int64) {
	s.store = &mortal{Store: s.log, died: make(chan struct{})}
	s.store.after.Store(after)
	o := engine.Options{Store: s.store, IdleTimeout: time.Minute, Agents: []engine.Agent{{
		Agent: tapedeck.Agent{Name: "flow", Kind: "workflow"}, Runner: workflow.New(workflow.Options{}),
	}}}
	for _, name := range []string{"a", "b"} {
		f := s.tasks[name]
		if f == nil {
			f = echo
		}
		o.Agents[0].Starts = append(o.Agents[0].Starts, name)
		o.Agents = append(o.Agents, engine.Agent{Agent: tapedeck.Agent{Name: name}, Runner: f})
	}
	e := engine.New(o)
	s.Engine = e
	s.Cleanup(func() { _ = e.Shutdown(context.Background()) })
}

// kill ends the server as kill -9 does, and starts another one.
func (s *server) restart(after int64) {
	s.Helper()
	s.store.alive.Lock()
	s.store.dead.Store(true)
	s.store.alive.Unlock()
	old := s.Engine
	s.begin(after)
	go func() { _ = old.Shutdown(context.Background()) }()
	if _, err := s.Recover(context.Background()); err != nil && !s.store.dead.Load() {
		s.Error(err)
	}
}

func (s *server) run(session, xml string, variables map[string]any) api.Started {
	s.Helper()
	raw, _ := json.Marshal(map[string]any{"bpmn": xml, "variables": variables})
	started, err := s.Start(context.Background(), api.Task{Session: session, Create: true, Agent: "flow", Text: "go", Config: raw, Actor: "user:ada"})
	if err != nil {
		s.Fatal(err)
	}
	return started
}

func (s *server) views() *projection.Projections {
	return projection.New(projection.Options{Store: s.log})
}

// workflow returns the state of the workflow of a session, from its active events.
func (s *server) workflow(session string) view.Workflow {
	s.Helper()
	f := view.NewWorkflowFold("")
	t, err := s.views().Timeline(context.Background(), session, -1)
	if err != nil {
		s.Fatal(err)
	}
	head, err := s.log.Head(context.Background(), session)
	if err != nil {
		s.Fatal(err)
	}
	for ev, err := range tapedeck.Events(context.Background(), s.log, session, 0) {
		if err != nil {
			s.Fatal(err)
		}
		if t.Has(ev.Offset, ev.ThreadName(), head.Head) {
			f.Apply(&ev)
		}
	}
	w, _ := f.Workflow()
	return w
}

// runs returns the runs of a session: "thread status".
func (s *server) runs(session string) (out []string) {
	s.Helper()
	now, err := s.views().Snapshot(context.Background(), session, view.Query{Runs: true, Limit: 1000})
	if err != nil {
		s.Fatal(err)
	}
	for _, th := range now.Threads {
		one, err := s.views().Snapshot(context.Background(), session, view.Query{Thread: th.Name, Runs: true, Limit: 1000})
		if err != nil {
			s.Fatal(err)
		}
		for _, r := range one.Runs {
			out = append(out, fmt.Sprint(r.Thread, " ", r.Status))
		}
	}
	slices.Sort(out)
	return out
}

const head = `<?xml version="1.0"?><definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tapedeck="https://tapedeck.dev/bpmn" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t"><process id="P" isExecutable="true">`

func xmlOf(elements string, flows ...string) string {
	var b strings.Builder
	for _, f := range flows {
		from, to, _ := strings.Cut(f, ">")
		fmt.Fprintf(&b, `<sequenceFlow id="%s_%s" sourceRef="%s" targetRef="%s"/>`, from, to, from, to)
	}
	return head + `<startEvent id="S"/><endEvent id="E"/>` + elements + b.String() + `</process></definitions>`
}

func task(id, agent, prompt string) string {
	return fmt.Sprintf(`<serviceTask id="%s" tapedeck:agent="%s" tapedeck:prompt="%s" tapedeck:output="r_%s"/>`, id, agent, prompt, id)
}

// triage has three tasks of agents, two of them at once, and asks a user.
var triage = xmlOf(task("Look", "a", "look at {{ cve }}")+`<parallelGateway id="F"/><parallelGateway id="J"/>`+task("One", "a", "one {{ r_Look }}")+task("Two", "b", "two")+
	`<userTask id="Ask" name="Fix it?"><extensionElements><tapedeck:form><tapedeck:field id="fix" type="boolean" required="true"/></tapedeck:form></extensionElements></userTask>`+
	`<intermediateCatchEvent id="Pause"><timerEventDefinition><timeDuration>PT1M</timeDuration></timerEventDefinition></intermediateCatchEvent>`,
	"S>Look", "Look>F", "F>One", "F>Two", "One>J", "Two>J", "J>Ask", "Ask>Pause", "Pause>E")

// settle lets the workflow run, and answers its question.
func (s *server) settle(session string) {
	synctest.Wait()
	w := s.workflow(session)
	for _, a := range w.Activations {
		for _, wait := range a.Waits {
			if wait.Permission != "" {
				_, err := s.Answer(context.Background(), api.Answer{Session: session, Permission: wait.Permission, Option: "submit", Input: tapedeck.Members{"fix": json.RawMessage("true")}, Actor: "user:ada"})
				if err != nil && !s.store.dead.Load() {
					s.Errorf("the answer: %v", err)
				}
			}
		}
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
}
