package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow"
)

// measureWorkflows measures how much workflows cost that are long, that wait, and that have
// many tasks at once.
func measureWorkflows(ctx context.Context, o options, r *report) error {
	for _, m := range []struct {
		name    string
		measure func(ctx context.Context, o options, r *report, name string) error
	}{
		{"workflow: a process that entered 10,000 elements continues, CPU", longProcess},
		{"workflow: 1,000 that wait for people, server CPU in 20 s", waitingProcesses},
		{"workflow: 200 instances of a task of an agent at once", manyTasks},
	} {
		if !r.wants(m.name) {
			continue
		}
		if err := m.measure(ctx, o, r, m.name); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

const diagramHead = `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tapedeck="https://tapedeck.dev/bpmn"><process id="P" isExecutable="true"><startEvent id="S"/><endEvent id="E"/>`

// loopDiagram enters three elements 3,333 times, and then asks a person.
const loopDiagram = diagramHead + `<exclusiveGateway id="M"/><scriptTask id="A"><script>n = n + 1</script></scriptTask>
<exclusiveGateway id="G" default="out"/><userTask id="U"/>
<sequenceFlow id="f1" sourceRef="S" targetRef="M"/><sequenceFlow id="f2" sourceRef="M" targetRef="A"/><sequenceFlow id="f3" sourceRef="A" targetRef="G"/>
<sequenceFlow id="f4" sourceRef="G" targetRef="M"><conditionExpression>n &lt; 3333</conditionExpression></sequenceFlow>
<sequenceFlow id="out" sourceRef="G" targetRef="U"/><sequenceFlow id="f5" sourceRef="U" targetRef="E"/></process></definitions>`

const askDiagram = diagramHead + `<userTask id="U"/><sequenceFlow id="f1" sourceRef="S" targetRef="U"/><sequenceFlow id="f2" sourceRef="U" targetRef="E"/></process></definitions>`

const manyDiagram = diagramHead + `<serviceTask id="T" tapedeck:agent="hello" tapedeck:prompt="number {{ loopCounter }}">
<multiInstanceLoopCharacteristics><loopCardinality>200</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>
<sequenceFlow id="f1" sourceRef="S" targetRef="T"/><sequenceFlow id="f2" sourceRef="T" targetRef="E"/></process></definitions>`

// longProcess folds the log of a long process and takes the answer that it waits for.
func longProcess(ctx context.Context, o options, r *report, name string) error {
	runner, log := workflow.New(workflow.Options{}), []tapedeck.Event{}
	in := tapedeck.Invocation{ID: "inv_1", Session: "s", Thread: tapedeck.MainThread, Inbox: &tapedeck.Inbox{Ready: make(chan struct{}), Take: func() []tapedeck.Event { return nil }}}
	in.Config, _ = json.Marshal(workflow.Config{BPMN: loopDiagram, Variables: map[string]json.RawMessage{"n": []byte("0")}})
	add := func(ev tapedeck.Event) {
		ev.Offset, ev.Invocation, ev.Thread, ev.Time = int64(len(log)), in.ID, in.Thread, time.Now()
		log = append(log, ev)
	}
	for ev, err := range runner.Run(ctx, in) {
		if err != nil {
			return err
		}
		if add(ev); ev.Type == tapedeck.PermissionRequested {
			break
		}
	}
	question, err := payload.DecodeAs[payload.PermissionRequested](log[len(log)-1])
	if err != nil {
		return err
	}
	add(payload.NewEvent(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: question.ID, Option: "submit"}}))
	in.Begun = func(context.Context) iter.Seq2[tapedeck.Event, error] {
		return func(yield func(tapedeck.Event, error) bool) {
			for i := range log {
				if !yield(log[i], nil) {
					return
				}
			}
		}
	}
	var took []float64
	for range max(o.rounds, 3) {
		before, last := cpu(), ""
		for ev, err := range runner.Run(ctx, in) {
			if err != nil {
				return err
			}
			last = ev.Type
		}
		if took = append(took, ms(cpu()-before)); last != tapedeck.WorkflowEnded {
			return fmt.Errorf("the process did not end: %s", last)
		}
	}
	at := quantile(took, .5)
	r.alone(name, fmt.Sprintf("%.0f ms (%d events)", at, len(log)), "≤ 100", at <= 100)
	return nil
}

// waitingProcesses compares a server with many workflows that wait with one without.
func waitingProcesses(ctx context.Context, o options, r *report, name string) error {
	const sessions, length = 1000, 20 * time.Second
	idle, err := ours(ctx, o.bin)
	if err != nil {
		return err
	}
	defer idle.stop()
	p, err := ours(ctx, o.bin)
	if err != nil {
		return err
	}
	defer p.stop()
	if _, err := runWorkflow(p, askDiagram); err != nil { // what the first one costs, all share
		return err
	}
	before, err := p.live()
	if err != nil {
		return err
	}
	last := ""
	for range sessions {
		if last, err = runWorkflow(p, askDiagram); err != nil {
			return err
		}
	}
	if err := awaitStatus(p, last, tapedeck.StatusRunning); err != nil {
		return err
	}
	time.Sleep(30 * time.Second) // until the server is quiet
	after, err := p.live()
	if err != nil {
		return err
	}
	used, none := p.cpu(), idle.cpu()
	time.Sleep(length)
	used, none = p.cpu()-used, idle.cpu()-none
	each := (after - before) / sessions
	r.alone(name, fmt.Sprintf("%.2f s (an idle server: %.2f s)", used, none), "", true)
	r.alone("… memory of the server for each", fmt.Sprintf("%.1f KB", each/1024), "≤ 20", each <= 20*1024)
	return nil
}

// manyTasks measures 200 instances of one task. The scripted agent does all of them at once.
func manyTasks(ctx context.Context, o options, r *report, name string) error {
	p, err := ours(ctx, o.bin)
	if err != nil {
		return err
	}
	defer p.stop()
	before, begin := p.rss(), time.Now()
	id, err := runWorkflow(p, manyDiagram)
	if err != nil {
		return err
	}
	if err := awaitStatus(p, id, tapedeck.StatusComplete); err != nil {
		return err
	}
	took := time.Since(begin)
	r.alone(name, fmt.Sprintf("%.1f s", took.Seconds()), "", true)
	r.alone("… more memory of the server, at most", fmt.Sprintf("%.0f MB", (p.peak()-before)/(1<<20)), "", true)
	return nil
}

// runWorkflow starts a diagram and returns its session.
func runWorkflow(p *process, diagram string) (string, error) {
	body, err := json.Marshal(api.RunWorkflow{BPMN: diagram})
	if err != nil {
		return "", err
	}
	resp, err := send(http.MethodPost, p.URL+"/api/v1/workflows/run", "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var started api.Started
	err = json.NewDecoder(resp.Body).Decode(&started)
	return started.Session, err
}

// awaitStatus waits until the workflow of a session has a status and, if it runs, a question.
func awaitStatus(p *process, session string, status tapedeck.Status) error {
	for begin := time.Now(); time.Since(begin) < 5*time.Minute; time.Sleep(50 * time.Millisecond) {
		resp, err := send(http.MethodGet, p.URL+"/api/v1/sessions/"+session+"/workflow", "", nil)
		if err != nil {
			return err
		}
		var now api.SessionWorkflow
		err = json.NewDecoder(resp.Body).Decode(&now)
		resp.Body.Close()
		if err != nil {
			return err
		}
		w := now.Workflow
		if w == nil || w.Status != status || status == tapedeck.StatusRunning && (len(w.Activations) == 0 || w.Activations[len(w.Activations)-1].Waits == nil) {
			continue
		}
		return nil
	}
	return errors.New("the workflow took more than five minutes")
}

var liveMemory = regexp.MustCompile(`(?m)^# (HeapAlloc|Stack) = (\d+)`)

// live returns the memory of the process that is in use after a collection, in bytes: its
// heap and the stacks of its goroutines. Each collection halves a stack that has grown.
func (p *process) live() (sum float64, err error) {
	for range 4 {
		resp, err := send(http.MethodGet, p.URL+"/debug/pprof/heap?gc=1&debug=1", "", nil)
		if err != nil {
			return 0, err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return 0, err
		}
		sum = 0
		for _, m := range liveMemory.FindAllSubmatch(text, -1) {
			n, _ := strconv.ParseFloat(string(m[2]), 64)
			sum += n
		}
	}
	if sum == 0 {
		return 0, errors.New("the server does not say how much memory it uses")
	}
	return sum, nil
}

// peak returns the most memory that the process had, in bytes, without its program file.
func (p *process) peak() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return 0
	}
	kb := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 {
			kb[f[0]], _ = strconv.ParseFloat(f[1], 64)
		}
	}
	return (kb["VmHWM:"] - kb["RssFile:"]) * 1024
}
