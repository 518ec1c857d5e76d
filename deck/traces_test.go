package deck_test

import (
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/otlptest"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// traced opens a deck that sends its spans to a collector. Call done to close the deck and
// to send the rest.
func traced(t *testing.T, dir string, o deck.Options) (d *deck.Deck, c *otlptest.Collector, done func()) {
	t.Helper()
	c = otlptest.Start(t)
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(c.URL))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	o.Traces = provider
	d = openAt(t, dir, o)
	return d, c, func() {
		t.Helper()
		if err := errors.Join(d.Close(context.Background()), provider.Shutdown(context.Background())); err != nil {
			t.Error(err)
		}
	}
}

// worker calls a model and two tools, one of which fails, and says a secret.
func worker(_ context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for _, line := range []string{
			`STEP_STARTED {"stepName":"look"}`,
			`TOOL_CALL_START {"toolCallId":"t1","toolCallName":"grep"}`,
			`TOOL_CALL_ARGS {"toolCallId":"t1","delta":"{\"q\":\"` + secret + `\"}"}`,
			`TOOL_CALL_END {"toolCallId":"t1"}`,
			`usage.reported {"model":"m-1","provider":"openai","inputTokens":812,"outputTokens":96,"costUsd":0.004}`,
			`TOOL_CALL_RESULT {"messageId":"r1","toolCallId":"t1","content":"` + secret + `","metadata":{"tapedeck":{"durationMs":7}}}`,
			`STEP_FINISHED {"stepName":"look"}`,
			`TOOL_CALL_START {"toolCallId":"t2","toolCallName":"rm"}`,
			`TOOL_CALL_END {"toolCallId":"t2"}`,
			`TOOL_CALL_RESULT {"messageId":"r2","toolCallId":"t2","content":"no","metadata":{"tapedeck":{"error":true}}}`,
		} {
			typ, data, _ := strings.Cut(line, " ")
			if !yield(tapedeck.Event{Type: typ, Data: []byte(data)}, nil) {
				return
			}
		}
		if in.Task == "fail" {
			yield(tapedeck.Event{}, errors.New(secret))
		}
	}
}

const remote = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func post(t *testing.T, d *deck.Deck, path, body string, header ...string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Host = "127.0.0.1"
	r.Header.Set("Content-Type", "application/json")
	for ; len(header) > 0; header = header[2:] {
		r.Header.Set(header[0], header[1])
	}
	w := httptest.NewRecorder()
	if d.Handler().ServeHTTP(w, r); w.Code >= 300 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
}

// TestTraceOfARun: the trace of a request goes on through the append that it causes, and
// through the run with its calls of models and tools. No span has content.
func TestTraceOfARun(t *testing.T) {
	d, c, done := traced(t, "", deck.Options{InMemory: true, Agents: []deck.Agent{{Name: "coder", Runner: tapedeck.RunnerFunc(worker)}}})
	post(t, d, "/api/v1/sessions/run", `{"task":"go"}`, "Traceparent", remote, "X-Request-Id", "req-7")
	post(t, d, "/api/v1/sessions", `{"id":"untraced"}`)
	if err := d.AwaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	done()
	request, append, run := c.Named(t, "POST http"), c.Named(t, "append"), c.Named(t, "invoke_agent coder")
	if hex.EncodeToString(request.ParentSpanId) != "b7ad6b7169203331" || otlptest.Attribute(request, "http.response.status_code") != "202" || otlptest.Attribute(request, "tapedeck.request.id") != "req-7" {
		t.Errorf("the request: %v", request)
	}
	chat, grep, rm, step := c.Named(t, "chat m-1"), c.Named(t, "execute_tool grep"), c.Named(t, "execute_tool rm"), c.Named(t, "step look")
	for child, parent := range map[*spans.Span]*spans.Span{append: request, chat: run, grep: run, rm: run, step: run} {
		if string(child.ParentSpanId) != string(parent.SpanId) || hex.EncodeToString(child.TraceId) != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is no child of %s", child.Name, parent.Name)
		}
	}
	if hex.EncodeToString(run.TraceId) != "0af7651916cd43dd8448eb211c80319c" || run.Status.GetCode() != spans.Status_STATUS_CODE_UNSET {
		t.Errorf("the run: %v", run)
	}
	for s, want := range map[*spans.Span][]string{
		run:  {"gen_ai.operation.name", "invoke_agent", "gen_ai.agent.name", "coder", "gen_ai.usage.input_tokens", "812", "tapedeck.outcome", "complete"},
		chat: {"gen_ai.operation.name", "chat", "gen_ai.request.model", "m-1", "gen_ai.provider.name", "openai", "gen_ai.usage.output_tokens", "96"},
		grep: {"gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "grep", "gen_ai.tool.call.id", "t1", "error.type", ""},
		rm:   {"gen_ai.tool.name", "rm", "error.type", "tool"},
	} {
		for ; len(want) > 0; want = want[2:] {
			if got := otlptest.Attribute(s, want[0]); got != want[1] {
				t.Errorf("%s: %s is %q, want %q", s.Name, want[0], got, want[1])
			}
		}
		if otlptest.Attribute(s, "gen_ai.conversation.id") == "" || otlptest.Attribute(s, "tapedeck.offset.first") == "" || otlptest.Attribute(s, "tapedeck.offset.last") == "" {
			t.Errorf("%s does not say where it is in the log: %v", s.Name, s)
		}
	}
	for _, s := range c.Spans() {
		if strings.Contains(s.String(), secret) || strings.Contains(s.String(), "untraced") {
			t.Errorf("a span that must not be: %v", s)
		}
	}
}

func TestTraceOfARunThatFails(t *testing.T) {
	d, c, done := traced(t, "", deck.Options{InMemory: true, TraceRequests: true, Agents: []deck.Agent{{Name: "coder", Runner: tapedeck.RunnerFunc(worker)}}})
	post(t, d, "/api/v1/sessions/run", `{"task":"fail"}`)
	if err := d.AwaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	done()
	run := c.Named(t, "invoke_agent coder")
	if run.Status.GetCode() != spans.Status_STATUS_CODE_ERROR || otlptest.Attribute(run, "error.type") == "" || string(run.TraceId) != string(c.Named(t, "POST http").TraceId) {
		t.Errorf("%v", run)
	}
	if strings.Contains(run.String(), secret) {
		t.Errorf("the span has the message of the error: %v", run)
	}
}

// TestTraceOverARestart: a run that a crash interrupted has a whole span, in the trace that
// it began with, and so have its tool and its sub-agent.
func TestTraceOverARestart(t *testing.T) {
	dir, began := t.TempDir(), time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	events := []tapedeck.Event{payload.NewEvent(payload.SessionCreated{})}
	for i, line := range []string{
		`a - RUN_STARTED {"threadId":"main","runId":"a","metadata":{"tapedeck":{"agent":"coder","owner":"eng_x","trace":"` + remote + `"}}}`,
		`b work RUN_STARTED {"threadId":"work","runId":"b","parentRunId":"a","metadata":{"tapedeck":{"agent":"helper","owner":"eng_x"}}}`,
		`b work TOOL_CALL_START {"toolCallId":"t","toolCallName":"slow"}`,
		`b work TOOL_CALL_END {"toolCallId":"t"}`,
	} {
		f := strings.SplitN(line, " ", 4)
		events = append(events, tapedeck.Event{Invocation: f[0], Thread: strings.Trim(f[1], "-"), Type: f[2], Data: []byte(f[3]), Time: began.Add(time.Duration(i) * time.Second)})
	}
	if _, err := s.Create(t.Context(), tapedeck.Spec{ID: "s", Events: events}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // as if the process had died: the runs are open
		t.Fatal(err)
	}
	_, c, done := traced(t, dir, deck.Options{})
	done()
	run, helper, tool := c.Named(t, "invoke_agent coder"), c.Named(t, "invoke_agent helper"), c.Named(t, "execute_tool slow")
	if hex.EncodeToString(run.TraceId) != "0af7651916cd43dd8448eb211c80319c" || hex.EncodeToString(run.ParentSpanId) != "b7ad6b7169203331" ||
		run.StartTimeUnixNano != uint64(began.UnixNano()) || otlptest.Attribute(run, "error.type") != tapedeck.CodeInterrupted || otlptest.Attribute(run, "tapedeck.offset.first") != "1" {
		t.Errorf("the run: %v", run)
	}
	if string(helper.ParentSpanId) != string(run.SpanId) || string(tool.ParentSpanId) != string(helper.SpanId) || tool.StartTimeUnixNano != uint64(began.Add(3*time.Second).UnixNano()) {
		t.Errorf("what the run did: %v\n%v", helper, tool)
	}
}

// TestManyEndedRuns: each run has its span once, also if many end at once.
func TestManyEndedRuns(t *testing.T) {
	d, c, done := traced(t, "", deck.Options{InMemory: true, Agents: []deck.Agent{{Name: "coder", Runner: tapedeck.RunnerFunc(worker)}}})
	for range 30 {
		if _, err := d.Run(t.Context(), api.Task{Text: "go"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.AwaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	done()
	seen := map[string]int{}
	for _, s := range c.Spans() {
		seen[s.Name]++
	}
	if seen["invoke_agent coder"] != 30 || seen["execute_tool rm"] != 30 || seen["chat m-1"] != 30 {
		t.Errorf("%v", seen)
	}
}
