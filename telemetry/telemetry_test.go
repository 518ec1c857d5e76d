package telemetry_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/telemetry"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A log is one session whose observer is a tracer.
type log struct {
	tapedeck.Session
	records []tapedeck.Record
	tracer  *telemetry.Tracer
	spans   *tracetest.InMemoryExporter
}

func newLog() *log {
	l := &log{Session: tapedeck.Session{ID: "s", Gen: 7}, spans: tracetest.NewInMemoryExporter()}
	l.tracer = telemetry.New(telemetry.Options{Provider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(l.spans)), Log: l})
	return l
}

func (l *log) List(context.Context, tapedeck.Filter) (tapedeck.SessionPage, error) {
	return tapedeck.SessionPage{Sessions: []tapedeck.Session{l.Session}}, nil
}

func (l *log) Read(ctx context.Context, _ string, r tapedeck.Range) (tapedeck.Page, error) {
	if err := ctx.Err(); err != nil {
		return tapedeck.Page{}, err
	}
	to := min(r.From+int64(r.Limit), int64(len(l.records)))
	return tapedeck.Page{Records: l.records[r.From:to], Next: to, Head: l.Head, Gen: l.Gen}, nil
}

// append appends a commit. A line is the time in seconds, the invocation, the type and the
// data of an event.
func (l *log) append(lines ...string) {
	for _, line := range lines {
		f := strings.SplitN(line, " ", 4)
		after, err := time.ParseDuration(f[0] + "s")
		if err != nil {
			panic(err)
		}
		e := tapedeck.Event{Offset: l.Head, Invocation: f[1], Type: f[2], Data: []byte(f[3]), Time: start.Add(after)}
		l.Apply(&e)
		b, err := e.MarshalJSON()
		if err != nil {
			panic(err)
		}
		l.records, l.Head = append(l.records, tapedeck.Record{Offset: e.Offset, Data: b}), l.Head+1
	}
	l.tracer.Observer().Committed([]tapedeck.Commit{{Session: l.Session}})
}

// names returns the spans as "name from-to status", in the order in which they ended.
func (l *log) names() []string {
	var out []string
	for _, s := range l.spans.GetSpans() {
		out = append(out, fmt.Sprintf("%s %v-%v %s", s.Name, s.StartTime.Sub(start).Seconds(), s.EndTime.Sub(start).Seconds(), s.Status.Code))
	}
	return out
}

func (l *log) want(t *testing.T, want ...string) {
	t.Helper()
	if got := l.names(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTimesOfSpans: each span begins and ends with its events.
func TestTimesOfSpans(t *testing.T) {
	l := newLog()
	l.append(`0 - session.created {}`, `1 a RUN_STARTED {}`)
	l.append(
		`2 a TOOL_CALL_START {"toolCallId":"t","toolCallName":"grep"}`, `3 a TOOL_CALL_END {"toolCallId":"t"}`, `4 a usage.reported {"model":"m"}`,
		`6 a TOOL_CALL_RESULT {"messageId":"r","toolCallId":"t","content":"x"}`, `7 a usage.reported {}`,
		`8 a permission.requested {"id":"p"}`, `20 a permission.answered {"id":"p"}`, `21 a usage.reported {"model":"m"}`,
		`22 a STEP_STARTED {"stepName":"one"}`, `23 a TOOL_CALL_START {"toolCallId":"u","toolCallName":"rm"}`,
	)
	l.append(`30 a RUN_FINISHED {}`)
	l.tracer.Flush(t.Context())
	l.want(t, "chat m 1-4 Unset", "execute_tool grep 3-6 Unset", "chat 6-7 Unset", "wait for answer 8-20 Unset", "chat m 20-21 Unset",
		"execute_tool rm 23-30 Error", "step one 22-30 Error", "invoke_agent 1-30 Unset")
	l.tracer.Flush(t.Context())
	if n := len(l.names()); n != 8 {
		t.Errorf("a second call makes spans again: %d", n)
	}
}

// TestHostileEvents: whatever a run has, it has one span that does not end before it begins.
func TestHostileEvents(t *testing.T) {
	l := newLog()
	l.append(`10 a RUN_STARTED {"metadata":{"tapedeck":{"trace":"no trace","agent":7}},"parentRunId":"a"}`)
	l.append(
		`9 a TOOL_CALL_START {"toolCallId":7}`, `8 a TOOL_CALL_RESULT {"toolCallId":"unknown"}`, `7 a usage.reported {"inputTokens":"many"}`,
		`6 a STEP_FINISHED {"stepName":"never began"}`, `5 b TOOL_CALL_START {"toolCallId":"t"}`, `4 a permission.answered []`,
		`3 a TOOL_CALL_START {"toolCallId":"d","toolCallName":"x"}`, `2 a TOOL_CALL_RESULT {"toolCallId":"d","metadata":{"tapedeck":{"durationMs":900000000}}}`,
	)
	l.append(`1 a RUN_ERROR {"code":7,"usage":7}`)
	l.tracer.Flush(t.Context())
	runs := 0
	for _, s := range l.spans.GetSpans() {
		if s.EndTime.Before(s.StartTime) {
			t.Errorf("%s ends before it begins", s.Name)
		}
		if s.Name == "invoke_agent" {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("%d spans of the run: %v", runs, l.names())
	}
}

// TestStoppedFlush: what a call leaves because it is stopped is made by the next one.
func TestStoppedFlush(t *testing.T) {
	l := newLog()
	for i := range 3 {
		l.append(fmt.Sprintf(`%d r%d RUN_STARTED {}`, i, i))
		l.append(fmt.Sprintf(`%d r%d RUN_FINISHED {}`, i, i))
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	l.tracer.Flush(stopped)
	l.want(t)
	l.tracer.Flush(t.Context())
	l.want(t, "invoke_agent 0-0 Unset", "invoke_agent 1-1 Unset", "invoke_agent 2-2 Unset")
}

func TestDeletedSessionHasNoSpans(t *testing.T) {
	l := newLog()
	l.append(`0 a RUN_STARTED {}`)
	l.append(`1 a RUN_FINISHED {}`)
	l.Gen = 8 // it was deleted and recreated
	l.tracer.Flush(t.Context())
	l.want(t)
}

// TestRequestsWithoutATraceAreNotTraced: they cost nothing.
func TestRequestsWithoutATraceAreNotTraced(t *testing.T) {
	l := newLog()
	for _, parent := range []string{"", "nonsense", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"} {
		r := httptest.NewRequest("GET", "/", nil)
		if parent != "" {
			r.Header.Set("Traceparent", parent)
		}
		if traced, end := l.tracer.Request(r, "http"); end != nil || traced != r {
			t.Errorf("%q is traced", parent)
		}
	}
}
