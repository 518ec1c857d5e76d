package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A fold makes the spans of a run from its events, by the conventions of OpenTelemetry for
// generative AI.
type fold struct {
	t       *Tracer
	ctx     context.Context
	session string
	root    string // the invocation of the run
	runs    map[string]*run
	count   int       // of spans
	last    time.Time // of the newest event
}

// A run is the run itself, or one that it started.
type run struct {
	ctx   context.Context // has its span
	span  trace.Span
	begin tapedeck.Event
	heard time.Time // of the newest input of the model: the beginning of its next call
	tools map[string]*piece
	asks  map[string]*piece
	steps []*piece
}

// A piece is something in a run that has begun.
type piece struct {
	name   string
	offset int64
	begin  time.Time
}

func (f *fold) add(e *tapedeck.Event) {
	f.last = e.Time
	if e.Type == tapedeck.RunStarted {
		f.start(e)
		return
	}
	r := f.runs[e.Invocation]
	if r == nil {
		return
	}
	switch e.Type {
	case tapedeck.MessageAdded, "input.steered":
		r.heard = e.Time
	case tapedeck.RunFinished, tapedeck.RunError:
		f.end(r, e)
	case tapedeck.UsageReported:
		f.call(r, e)
	case tapedeck.PermissionRequested, tapedeck.PermissionAnswered:
		f.ask(r, e)
	case tapedeck.StepStarted, tapedeck.StepFinished:
		f.step(r, e)
	default:
		f.tool(r, e)
	}
}

// start begins the span of the run, or of one that it started.
func (f *fold) start(e *tapedeck.Event) {
	var d payload.RunStarted
	_ = e.Unpack(&d) // a member of another shape counts as absent
	meta := tapedeck.MetaOf(d.Metadata)
	ctx, parent := f.ctx, f.runs[d.ParentRunID]
	switch {
	case e.Invocation == f.root && f.runs[f.root] == nil:
		ctx = w3c.Extract(ctx, propagation.MapCarrier{"traceparent": meta.Trace})
	case parent != nil && f.runs[e.Invocation] == nil:
		ctx = parent.ctx
	default:
		return // of another run
	}
	name := "invoke_agent"
	attrs := f.about(e, attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("tapedeck.run.id", e.Invocation), attribute.String("tapedeck.thread", e.ThreadName()))
	if meta.Agent != "" {
		name += " " + meta.Agent
		attrs = append(attrs, attribute.String("gen_ai.agent.name", meta.Agent))
	}
	if meta.Model != "" {
		attrs = append(attrs, attribute.String("gen_ai.request.model", meta.Model))
	}
	r := &run{begin: *e, heard: e.Time, tools: map[string]*piece{}, asks: map[string]*piece{}}
	r.ctx, r.span = f.t.tracer.Start(ctx, name, trace.WithTimestamp(e.Time), trace.WithAttributes(attrs...))
	f.runs[e.Invocation] = r
}

// about returns attributes of a span that begins with an event.
func (f *fold) about(e *tapedeck.Event, more ...attribute.KeyValue) []attribute.KeyValue {
	return append(more, attribute.String("gen_ai.conversation.id", f.session), attribute.String("tapedeck.session.id", f.session), attribute.Int64("tapedeck.offset.first", e.Offset))
}

// end ends the span of a run, and what was open in it.
func (f *fold) end(r *run, e *tapedeck.Event) {
	var d struct {
		Code  string               `json:"code"`
		Usage []payload.TokenUsage `json:"usage"`
	}
	_ = e.Unpack(&d) // a member of another shape counts as absent
	f.abandon(r, e.Time)
	var input, output int64
	for i := range d.Usage {
		input, output = input+value(d.Usage[i].InputTokens), output+value(d.Usage[i].OutputTokens)
	}
	if len(d.Usage) > 0 {
		r.span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", input), attribute.Int64("gen_ai.usage.output_tokens", output))
	}
	var s tapedeck.Session
	s.Apply(e)
	r.span.SetAttributes(attribute.String("tapedeck.outcome", string(s.Status)), attribute.Int64("tapedeck.offset.last", e.Offset))
	if e.Type == tapedeck.RunError {
		if d.Code == "" {
			d.Code = string(s.Status)
		}
		r.span.SetAttributes(attribute.String("error.type", d.Code))
		r.span.SetStatus(codes.Error, "") // the message may have content
	}
	f.finish(r, e.Time)
	delete(f.runs, e.Invocation)
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func (f *fold) finish(r *run, at time.Time) {
	r.span.End(trace.WithTimestamp(later(at, r.begin.Time)))
	f.made()
}

// later returns the later time. The clock of events may be set back.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// piece makes the span of something that ends with an event.
func (f *fold) piece(r *run, name string, p *piece, e *tapedeck.Event, failed string, attrs ...attribute.KeyValue) {
	attrs = append(f.about(&tapedeck.Event{Offset: p.offset}, attrs...), attribute.Int64("tapedeck.offset.last", e.Offset))
	_, span := f.t.tracer.Start(r.ctx, name, trace.WithTimestamp(p.begin), trace.WithAttributes(attrs...))
	if failed != "" {
		span.SetAttributes(attribute.String("error.type", failed))
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(later(e.Time, p.begin)))
	f.made()
}

// call makes the span of a call of a model. The log has no event for its beginning: it
// began with the newest input of the model.
func (f *fold) call(r *run, e *tapedeck.Event) {
	var d payload.UsageReported
	_ = e.Unpack(&d) // a member of another shape counts as absent
	attrs := []attribute.KeyValue{attribute.String("gen_ai.operation.name", "chat")}
	name := "chat"
	for key, text := range map[string]string{"gen_ai.request.model": d.Model, "gen_ai.provider.name": d.Provider} {
		if text != "" {
			attrs = append(attrs, attribute.String(key, text))
		}
	}
	if d.Model != "" {
		name += " " + d.Model
	}
	for key, n := range map[string]*int64{"gen_ai.usage.input_tokens": d.InputTokens, "gen_ai.usage.output_tokens": d.OutputTokens} {
		if n != nil {
			attrs = append(attrs, attribute.Int64(key, *n))
		}
	}
	if d.CostUSD != nil {
		attrs = append(attrs, attribute.Float64("tapedeck.cost_usd", *d.CostUSD))
	}
	f.piece(r, name, &piece{offset: e.Offset, begin: r.heard}, e, "", attrs...)
	r.heard = e.Time
}

// tool follows the calls of tools. A tool works from the end of its arguments on.
func (f *fold) tool(r *run, e *tapedeck.Event) {
	var d struct {
		ID       string           `json:"toolCallId"`
		Name     string           `json:"toolCallName"`
		Metadata tapedeck.Members `json:"metadata"`
	}
	switch e.Type {
	case tapedeck.ToolCallStart, tapedeck.ToolCallEnd, tapedeck.ToolCallResult:
		_ = e.Unpack(&d) // a member of another shape counts as absent
	default:
		return
	}
	p := r.tools[d.ID]
	switch {
	case e.Type == tapedeck.ToolCallStart:
		r.tools[d.ID] = &piece{d.Name, e.Offset, e.Time}
	case p == nil:
	case e.Type == tapedeck.ToolCallEnd:
		p.begin = e.Time
	default:
		meta, failed := tapedeck.MetaOf(d.Metadata), ""
		if meta.Error {
			failed = "tool"
		}
		if meta.DurationMS != nil && *meta.DurationMS >= 0 {
			p.begin = later(e.Time.Add(-time.Duration(*meta.DurationMS)*time.Millisecond), r.begin.Time)
		}
		f.executed(r, d.ID, p, e, failed)
		r.heard = e.Time
	}
}

func (f *fold) executed(r *run, id string, p *piece, e *tapedeck.Event, failed string) {
	delete(r.tools, id)
	f.piece(r, "execute_tool "+p.name, p, e, failed,
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", p.name), attribute.String("gen_ai.tool.call.id", id))
}

// ask follows the questions to people.
func (f *fold) ask(r *run, e *tapedeck.Event) {
	var d struct {
		ID string `json:"id"`
	}
	_ = e.Unpack(&d) // a member of another shape counts as absent
	if e.Type == tapedeck.PermissionRequested {
		r.asks[d.ID] = &piece{d.ID, e.Offset, e.Time}
		return
	}
	if p := r.asks[d.ID]; p != nil {
		delete(r.asks, d.ID)
		f.piece(r, "wait for answer", p, e, "", attribute.String("tapedeck.permission.id", d.ID))
		r.heard = e.Time
	}
}

// step follows the steps of a run. The newest one of a name ends first.
func (f *fold) step(r *run, e *tapedeck.Event) {
	var d payload.StepStarted
	_ = e.Unpack(&d) // a member of another shape counts as absent
	if e.Type == tapedeck.StepStarted {
		r.steps = append(r.steps, &piece{d.StepName, e.Offset, e.Time})
		return
	}
	for i := len(r.steps) - 1; i >= 0; i-- {
		if p := r.steps[i]; p.name == d.StepName {
			r.steps = append(r.steps[:i], r.steps[i+1:]...)
			f.piece(r, "step "+p.name, p, e, "")
			return
		}
	}
}

// abandon ends what is open in a run that ends.
func (f *fold) abandon(r *run, at time.Time) {
	e := &tapedeck.Event{Offset: r.begin.Offset, Time: at}
	for id, p := range r.tools {
		e.Offset = p.offset
		f.executed(r, id, p, e, "unfinished")
	}
	for _, p := range r.asks {
		e.Offset = p.offset
		f.piece(r, "wait for answer", p, e, "unfinished", attribute.String("tapedeck.permission.id", p.name))
	}
	for _, p := range r.steps {
		e.Offset = p.offset
		f.piece(r, "step "+p.name, p, e, "unfinished")
	}
}

// close ends the spans of runs whose end was not read.
func (f *fold) close() {
	for _, r := range f.runs {
		f.abandon(r, f.last)
		r.span.SetStatus(codes.Error, "")
		f.finish(r, f.last)
	}
}
