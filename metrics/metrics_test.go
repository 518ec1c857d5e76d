package metrics

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/store"
)

// figures returns the lines that the handler answers with.
func figures(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, l+"\n") {
			t.Errorf("there is no line %q", l)
		}
	}
}

func TestGroupsAreMeasured(t *testing.T) {
	m := New("v1")
	m.Wrote(store.Group{Requests: 3, Took: 2 * time.Millisecond, Commit: time.Millisecond})
	m.Wrote(store.Group{Requests: 1, Took: time.Millisecond}) // it was refused, so there was no commit
	m.Wrote(store.Group{Requests: 2, Took: time.Second, Commit: time.Second, Failed: true})
	has(t, figures(t, m), `tapedeck_group_requests_sum 6`, `tapedeck_group_requests_bucket{le="2"} 2`, `tapedeck_group_seconds_count 3`,
		`tapedeck_commit_seconds_count 2`, `tapedeck_group_failures_total 1`, `tapedeck_build_info{version="v1"} 1`)
	var s api.Stats
	m.Complete(&s)
	if st := s.Store; st.Groups != 3 || st.Requests != 6 || st.Failures != 1 || st.CommitSeconds != 1.001 || s.Heap == 0 || s.Goroutines == 0 {
		t.Errorf("%+v", s)
	}
}

func TestRequestsAreMeasured(t *testing.T) {
	m := New("v1")
	m.Began("http")
	m.Began("http")
	m.Streams("http")
	m.Began("a protocol that a client made up")
	m.Ended("a protocol that a client made up", 404, time.Second, false)
	m.Ended("http", 200, time.Second, false)
	has(t, figures(t, m), `tapedeck_requests_open{protocol="http"} 1`, `tapedeck_streams_open{protocol="http"} 1`, `tapedeck_request_seconds_count{protocol="http"} 1`,
		`tapedeck_request_errors_total{kind="not_found",protocol="other"} 1`, `tapedeck_requests_open{protocol="other"} 0`)
	m.Ended("http", 500, time.Hour, true)
	text := figures(t, m)
	has(t, text, `tapedeck_requests_open{protocol="http"} 0`, `tapedeck_streams_open{protocol="http"} 0`, `tapedeck_request_seconds_count{protocol="http"} 1`,
		`tapedeck_request_errors_total{kind="internal",protocol="http"} 1`)
	if strings.Contains(text, "made up") {
		t.Error("a label has what a client chose")
	}
	var s api.Stats
	m.Complete(&s)
	if len(s.Requests) != 2 || s.Requests[0].Protocol != "http" || s.Requests[0].Errors["internal"] != 1 || s.Requests[1].Errors["not_found"] != 1 {
		t.Errorf("%+v", s.Requests)
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A log folds events into the entry of a session, and tells the observer of each append.
type log struct {
	tapedeck.Session
	observe func([]tapedeck.Commit)
}

func (l *log) append(lines ...string) {
	var records []tapedeck.Record
	for _, line := range lines {
		f := strings.SplitN(line, " ", 4) // seconds, invocation, type, data
		after, _ := time.ParseDuration(f[0] + "s")
		e := tapedeck.Event{Offset: l.Head, Invocation: f[1], Type: f[2], Data: []byte("{}"), Time: start.Add(after)}
		if len(f) > 3 {
			e.Data = []byte(f[3])
		}
		l.Apply(&e)
		l.Head++
		b, err := e.MarshalJSON()
		if err != nil {
			panic(err)
		}
		records = append(records, tapedeck.Record{Offset: e.Offset, Data: b})
	}
	l.observe([]tapedeck.Commit{{Session: l.Session, Records: records}})
}

func (l *log) state(m *Metrics) api.RunStats {
	var s api.Stats
	m.Complete(&s)
	return s.Runs
}

func TestRunsAreFollowed(t *testing.T) {
	m := New("v1")
	l := &log{tapedeck.Session{ID: "s", Gen: 7, Kind: tapedeck.KindSession}, m.Observer().Committed}
	l.append("0 a RUN_STARTED {}", `0 b RUN_STARTED {"parentRunId":"a"}`)
	if got := l.state(m); got.Running != 2 || got.Waiting != 0 {
		t.Errorf("two runs: %+v", got)
	}
	l.append(`1 a permission.requested {"id":"p"}`)
	if got := l.state(m); got.Running != 0 || got.Waiting != 2 {
		t.Errorf("a question: %+v", got)
	}
	l.append(`3 b RUN_ERROR {"code":"interrupted_by_restart","message":"x"}`, `4 a RUN_FINISHED {"outcome":{"type":"cancelled"}}`)
	if got := l.state(m); got.Running != 0 || got.Waiting != 0 || got.Ended["interrupted"] != 1 || got.Ended["cancelled"] != 1 || got.Ended["complete"] != 0 {
		t.Errorf("at the end: %+v", got)
	}
	has(t, figures(t, m), `tapedeck_run_seconds_sum{outcome="interrupted"} 3`, `tapedeck_run_seconds_sum{outcome="cancelled"} 4`, `tapedeck_events_total 5`)
	l.append("5 c RUN_STARTED {}", "6 c RUN_FINISHED {}") // as an import does
	if got := l.state(m); got.Running != 0 || got.Ended["complete"] != 0 {
		t.Errorf("after a run in one commit: %+v", got)
	}
	l.append("7 d RUN_STARTED {}")
	m.Observer().Committed([]tapedeck.Commit{{Session: l.Session, Gone: true}})
	if got := l.state(m); got.Running != 0 {
		t.Errorf("after the deletion of the session: %+v", got)
	}
	if len(m.runs.active) != 0 {
		t.Errorf("sessions that are idle take memory: %v", m.runs.active)
	}
}

func TestCheckpointsAreNoEvents(t *testing.T) {
	m := New("v1")
	m.Observer().Committed([]tapedeck.Commit{{Session: tapedeck.Session{Kind: tapedeck.KindView}, Records: []tapedeck.Record{{Data: []byte("x")}}}})
	has(t, figures(t, m), "tapedeck_events_total 0", "tapedeck_event_bytes_total 0")
}

// pages is a catalogue with a session a page.
type pages []tapedeck.Session

func (p pages) List(_ context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	for i := len(f.Cursor); i < len(p); i++ {
		if f.OpenRun && len(p[i].Runs) > 0 || f.Inputs && len(p[i].Inputs) > 0 {
			return tapedeck.SessionPage{Sessions: p[i : i+1], Next: strings.Repeat("x", i+1)}, nil
		}
	}
	return tapedeck.SessionPage{}, nil
}

func TestWhatIsOpenAtTheStartCounts(t *testing.T) {
	m := New("v1")
	run := []tapedeck.OpenRun{{Invocation: "a", Started: start}}
	err := m.Load(t.Context(), pages{
		{Gen: 1, Runs: run}, {Gen: 2, Runs: run, Waiting: make([]tapedeck.OpenQuestion, 1)}, {Gen: 3}, {Gen: 4, Inputs: make([]tapedeck.WaitingInput, 3)}, {Gen: 5, Runs: run},
	})
	var s api.Stats
	m.Complete(&s)
	if err != nil || s.Runs.Running != 2 || s.Runs.Waiting != 1 || s.Runs.Inputs != 3 {
		t.Errorf("%+v, %v", s.Runs, err)
	}
}

func TestGaugesAreReadForEachAnswer(t *testing.T) {
	m, n := New("v1"), 0
	m.Read(func() api.Stats {
		n++
		return api.Stats{Followers: api.FollowerStats{Open: n}, Store: api.StoreStats{TailHits: int64(10 * n)}}
	})
	figures(t, m)
	has(t, figures(t, m), "tapedeck_followers_open 2", "tapedeck_tail_hits_total 20", "# TYPE tapedeck_tail_hits_total counter")
}
