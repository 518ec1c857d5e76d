package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/task"
)

// A meter counts the records that are read.
type meter struct {
	*hub.Hub
	records int
}

func (m *meter) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	p, err := m.Hub.Read(ctx, session, r)
	m.records += len(p.Records)
	return p, err
}

// longLog has many finished runs and one open run, of n events each.
func longLog(runs, n int) (log []tapedeck.Event) {
	for i := range runs {
		add := func(typ, data string) {
			e := do(typ, data)
			e.Invocation = fmt.Sprint("i", i)
			log = append(log, e)
		}
		add("RUN_STARTED", `{}`)
		add("TEXT_MESSAGE_START", `{~messageId~:~m~}`)
		for range n {
			add("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a few words of text ~}`)
		}
		if i < runs-1 {
			add("RUN_FINISHED", `{}`)
		}
	}
	return log
}

// To continue within a run reads the run, not the session.
func TestResumeReadsTheRun(t *testing.T) {
	_, l := newHandler()
	m := &meter{Hub: l.Hub}
	h := l.handler(task.Options{Sessions: m})
	log := longLog(50, 400)
	l.create(t, log...)
	for _, back := range []int{0, 1, 10, 300, 399, 400} {
		m.records = 0
		p := readTasks(t, h, fmt.Sprintf("s/events?format=task&from=%d", len(log)-back))
		if len(p.Events) != back || m.records > 2500 {
			t.Errorf("the last %d events: got %d, and %d were read", back, len(p.Events), m.records)
		}
	}
}

// However many open runs must be looked up, and in whatever order, at most a few times the
// log is read.
func TestLookbackIsBounded(t *testing.T) {
	_, l := newHandler()
	m := &meter{Hub: l.Hub}
	h := l.handler(task.Options{Sessions: m})
	const runs = 300
	var log []tapedeck.Event
	event := func(typ, data string, i int) {
		e := do(typ, data)
		e.Invocation, e.Thread = fmt.Sprint("i", i), fmt.Sprint("t", i)
		log = append(log, e)
	}
	for i := range runs {
		event("RUN_STARTED", `{}`, i)
		event("TEXT_MESSAGE_START", `{~messageId~:~m~}`, i)
		event("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~text~}`, i)
	}
	for i := range runs { // the newest first
		event("TEXT_MESSAGE_END", `{~messageId~:~m~}`, runs-1-i)
	}
	l.create(t, log...)
	p := readTasks(t, h, fmt.Sprintf("s/events?format=task&from=%d", 3*runs))
	if len(p.Events) != runs || m.records > 10*len(log) {
		t.Errorf("got %d, and %d were read of %d", len(p.Events), m.records, len(log))
	}
	for _, e := range p.Events {
		if e.Data["full_text"] != "text" {
			t.Fatalf("got %+v", e)
		}
	}
}

// No content of an event breaks the frame or the JSON.
func TestHostileLogs(t *testing.T) {
	deep := strings.Repeat("[", 50_000)
	for name, event := range map[string]tapedeck.Event{
		"line ends":          do("message.added", `{~message~:{~id~:~u~,~role~:~user~,~content~:~a\n\ndata: {}\r\nid: 9\u2028~}}`),
		"another shape":      do("message.added", `{~message~:7}`),
		"an array":           do("plan.updated", `{~entries~:{}}`),
		"deep arguments":     do("TOOL_CALL_ARGS", `{~toolCallId~:~c~,~delta~:~`+deep+`~}`),
		"no id":              do("TEXT_MESSAGE_START", `{}`),
		"a number for an id": do("TEXT_MESSAGE_CONTENT", `{~messageId~:7,~delta~:[]}`),
		"nothing":            do("TOOL_CALL_RESULT", ``),
		"cost":               do("usage.reported", `{~costUsd~:~much~}`),
		"null":               do("CUSTOM", `{~name~:~task.output_display~,~value~:null}`),
		"a name":             do("CUSTOM", `{~name~:~task.~,~value~:{}}`),
	} {
		t.Run(name, func(t *testing.T) {
			h, l := newHandler()
			log := []tapedeck.Event{
				do("RUN_STARTED", `[]`[:0]), do("TOOL_CALL_START", `{~toolCallId~:~c~,~toolCallName~:~T~}`),
				event, do("TOOL_CALL_END", `{~toolCallId~:~c~}`), do("RUN_ERROR", `{}`),
			}
			l.create(t, log...)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/stream?format=task", nil))
			ends := 0
			for line := range strings.Lines(w.Body.String()) {
				data, ok := strings.CutPrefix(line, "data: ")
				var e taskEvent
				switch {
				case ok && json.Unmarshal([]byte(data), &e) != nil:
					t.Errorf("line %q", line)
				case !ok && strings.Trim(line, "id: 0123456789rety@\n") != "":
					t.Errorf("line %q", line)
				case e.Type == "error":
					ends++
				}
			}
			if ends != 1 {
				t.Errorf("it ends %d times in\n%s", ends, w.Body)
			}
		})
	}
}

// BenchmarkFanOut measures one delta until it was written to a hundred followers.
func BenchmarkFanOut(b *testing.B) {
	const followers = 100
	h, l := newHandler()
	log := longLog(1, 1)
	l.create(b, log...)
	ctx, cancel := context.WithCancel(b.Context())
	wrote, left := make(chan struct{}, followers), make(chan struct{}, followers)
	for range followers {
		go func() {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/stream?format=task", nil).WithContext(ctx)
			h.ServeHTTP(&counter{http.Header{}, func() { wrote <- struct{}{} }}, r)
			left <- struct{}{}
		}()
	}
	round := func(done chan struct{}) {
		for range followers {
			<-done
		}
	}
	round(wrote)
	b.ReportAllocs()
	for b.Loop() {
		l.append(b, log[len(log)-1])
		round(wrote)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/followers, "ns/follower")
	cancel()
	round(left)
}

// BenchmarkHistory reads the history of 100,000 events.
func BenchmarkHistory(b *testing.B) {
	h, l := newHandler()
	for i, log := 0, longLog(100, 1000); len(log) > 0; i++ {
		n := min(10_000, len(log))
		if i == 0 {
			_, _ = l.Create(b.Context(), tapedeck.Spec{ID: "s", Events: log[:n]})
		} else {
			l.append(b, log[:n]...)
		}
		log = log[n:]
	}
	start := time.Now()
	for b.Loop() {
		readTasks(b, h, "s/events/history")
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds())/float64(b.N), "ms")
}

// A counter is a client that discards what it receives, and counts the writes.
type counter struct {
	header http.Header
	wrote  func()
}

func (c *counter) Header() http.Header              { return c.header }
func (c *counter) WriteHeader(int)                  {}
func (c *counter) Write(p []byte) (int, error)      { c.wrote(); return len(p), nil }
func (c *counter) Flush()                           {}
func (c *counter) SetWriteDeadline(time.Time) error { return nil }
