package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A host is what the engine is to a runner: it keeps the log, starts agents and delivers
// what others append. A walk can be cut off after any event and continue.
type host struct {
	testing.TB
	runner *Runner
	config Config
	agent  func(ctx context.Context, d tapedeck.Delegation) (tapedeck.Delegated, error) // nil: it says its prompt
	others []string                                                                     // agents beside a, b and scout
	cutAt  int                                                                          // the walk is cut off before this many events are in the log; 0 for never

	mu    sync.Mutex
	log   []tapedeck.Event
	once  map[string]tapedeck.Delegated // outcomes by thread
	calls map[string]int                // by thread: how often an agent worked to the end
	inbox []tapedeck.Event
	ready chan struct{}
	runs  int
	open  string // the invocation of the open run
}

func newHost(t testing.TB, xml string, variables ...any) *host {
	h := &host{TB: t, runner: New(Options{}), config: Config{BPMN: xml, Variables: map[string]json.RawMessage{}}}
	for i := 0; i+1 < len(variables); i += 2 {
		h.config.Variables[variables[i].(string)] = encode(variables[i+1])
	}
	h.once, h.calls, h.ready = map[string]tapedeck.Delegated{}, map[string]int{}, make(chan struct{}, 1)
	return h
}

var errCut = errors.New("the server died")

func (h *host) append(ev tapedeck.Event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cutAt > 0 && len(h.log) >= h.cutAt {
		return false
	}
	if err := payload.CheckData(&ev); err != nil {
		h.Errorf("%s: %v", ev.Data, err)
	}
	ev.Offset, ev.Time, ev.Channel = int64(len(h.log)), time.Now(), tapedeck.ChannelOf(ev.Type)
	h.log = append(h.log, ev)
	return true
}

func (h *host) events(of func(*tapedeck.Event) bool) iter.Seq2[tapedeck.Event, error] {
	h.mu.Lock()
	all := slices.Clone(h.log)
	h.mu.Unlock()
	return func(yield func(tapedeck.Event, error) bool) {
		for i := range all {
			if of(&all[i]) && !yield(all[i], nil) {
				return
			}
		}
	}
}

// invocation returns the invocation of a run; resumes is "" for one that begins.
func (h *host) invocation(resumes string) tapedeck.Invocation {
	raw, _ := json.Marshal(h.config)
	in := tapedeck.Invocation{ID: h.open, Session: "s", Thread: "main", Config: raw, Resumes: resumes, Delegate: h.delegate}
	for _, name := range append([]string{"a", "b", "scout"}, h.others...) {
		in.Delegates = append(in.Delegates, tapedeck.Agent{Name: name})
	}
	in.History = func(context.Context) iter.Seq2[tapedeck.Event, error] {
		return h.events(func(e *tapedeck.Event) bool { return e.Invocation != in.ID })
	}
	in.Begun = func(context.Context) iter.Seq2[tapedeck.Event, error] {
		return h.events(func(e *tapedeck.Event) bool { return e.Invocation == in.ID })
	}
	in.Inbox = &tapedeck.Inbox{Ready: h.ready, Take: func() []tapedeck.Event {
		h.mu.Lock()
		defer h.mu.Unlock()
		out := h.inbox
		h.inbox = nil
		return out
	}}
	return in
}

// begin begins a run, or refuses it.
func (h *host) begin(ctx context.Context, resumes string) error {
	h.runs++
	h.open = fmt.Sprint("inv_", h.runs)
	opening, err := h.runner.Opening(ctx, h.invocation(resumes))
	if err != nil {
		return err
	}
	for _, ev := range opening {
		ev.Invocation = h.open
		h.append(ev)
	}
	return nil
}

// walk walks the open run until it ends, is stopped or is cut off.
func (h *host) walk(ctx context.Context, resumes string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for ev, err := range h.runner.Run(ctx, h.invocation(resumes)) {
		if err != nil {
			return err
		}
		ev.Invocation = h.open
		if !h.append(ev) {
			cancel()
			return errCut
		}
	}
	return nil
}

// run runs the process from the beginning to its end.
func (h *host) run() (view.Workflow, error) {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour*24*365)
	defer cancel()
	if err := h.begin(ctx, ""); err != nil {
		return view.Workflow{}, err
	}
	err := h.walk(ctx, "")
	return h.state(), err
}

func (h *host) state() view.Workflow {
	f := view.NewWorkflowFold("")
	for ev := range h.events(func(*tapedeck.Event) bool { return true }) {
		f.Apply(&ev)
	}
	w, _ := f.Workflow()
	return w
}

// delegate is once for each thread, as in the engine.
func (h *host) delegate(ctx context.Context, d tapedeck.Delegation) (tapedeck.Delegated, error) {
	h.mu.Lock()
	done, known := h.once[d.Thread]
	h.mu.Unlock()
	if known {
		return done, nil
	}
	out, err := tapedeck.Delegated{Status: tapedeck.StatusComplete, Text: d.Task}, error(nil)
	if h.agent != nil {
		out, err = h.agent(ctx, d)
	}
	if ctx.Err() != nil {
		return tapedeck.Delegated{Status: tapedeck.StatusCancelled}, nil
	}
	out.Thread = d.Thread
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[d.Thread]++
	if err == nil {
		h.once[d.Thread] = out
	}
	return out, err
}

// send appends an event of others, which the run finds in its inbox.
func (h *host) send(p payload.Payload) {
	ev := payload.NewEvent(p)
	ev.Invocation = h.open
	h.append(ev)
	h.mu.Lock()
	ev.Offset = int64(len(h.log) - 1)
	h.inbox = append(h.inbox, ev)
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// trace shows the decisions: +A entered, -A left, A~ waits, !A caught, xA failed.
func (h *host) trace() string {
	var out []string
	for ev := range h.events(func(*tapedeck.Event) bool { return true }) {
		var d struct{ Element, Outcome string }
		_ = json.Unmarshal(ev.Data, &d)
		switch ev.Type {
		case tapedeck.WorkflowEntered:
			out = append(out, "+"+d.Element)
		case tapedeck.WorkflowLeft:
			out = append(out, "-"+d.Element)
		case tapedeck.WorkflowWaiting:
			out = append(out, d.Element+"~")
		case tapedeck.WorkflowCaught:
			out = append(out, "!"+d.Element)
		case tapedeck.WorkflowFailed:
			out = append(out, "x"+d.Element)
		case tapedeck.WorkflowEnded:
			out = append(out, d.Outcome)
		}
	}
	return strings.Join(out, " ")
}

// diagram makes a process of elements and flows. A flow is "A>B" or "A>B:condition".
func diagramOf(elements string, flows ...string) string {
	return definitionsOf(processOf("P", elements, flows...))
}

func definitionsOf(body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xmlns:tapedeck="https://tapedeck.dev/bpmn" xmlns:camunda="http://camunda.org/schema/1.0/bpmn" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
` + body + `
</definitions>`
}

func processOf(id, elements string, flows ...string) string {
	return `<process id="` + id + `" isExecutable="true">` + elements + flowsOf(flows...) + `</process>`
}

func flowsOf(flows ...string) string {
	var b strings.Builder
	for _, f := range flows {
		f, condition, _ := strings.Cut(f, ":")
		from, to, _ := strings.Cut(f, ">")
		fmt.Fprintf(&b, `<sequenceFlow id="%s_%s" sourceRef="%s" targetRef="%s">`, from, to, from, to)
		if condition != "" {
			fmt.Fprintf(&b, `<conditionExpression xsi:type="tFormalExpression">%s</conditionExpression>`, strings.NewReplacer("<", "&lt;", "&", "&amp;").Replace(condition))
		}
		b.WriteString(`</sequenceFlow>`)
	}
	return b.String()
}

// agentTask is a task of the agent a.
func agentTask(id, prompt, output string) string {
	return fmt.Sprintf(`<serviceTask id="%s" tapedeck:agent="a" tapedeck:prompt="%s" tapedeck:output="%s"/>`, id, prompt, output)
}

func script(id, text string) string {
	return fmt.Sprintf(`<scriptTask id="%s" scriptFormat="expr"><script>%s</script></scriptTask>`, id, text)
}

// inBubble runs a test in which no real time passes.
func inBubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

// values returns variables as JSON.
func values(w view.Workflow) string {
	raw, _ := json.Marshal(w.Variables)
	return string(raw)
}
