package metrics

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tapedeck/tapedeck"
)

// runs follow the open runs of all sessions. They are a fold of commits, like the
// entries of the catalogue. A run that begins and ends in one commit, such as an imported
// one, is not measured.
type runs struct {
	seconds *prometheus.HistogramVec

	mu     sync.Mutex
	active map[int64]*activity // by the gen of the session; those with neither open runs nor inputs are left out
}

// An activity is what happens in one session.
type activity struct {
	open    []tapedeck.OpenRun // shared with the entry of the session
	waiting bool               // for an answer of people
	inputs  int
}

// outcomes are the values of the label outcome.
var outcomes = []tapedeck.Status{tapedeck.StatusComplete, tapedeck.StatusFailed, tapedeck.StatusCancelled, tapedeck.StatusInterrupted}

func newRuns() *runs {
	r := &runs{active: map[int64]*activity{}, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "run_seconds", Help: "Time from the start of a run to its end, by the clock of its events.",
		Buckets: prometheus.ExponentialBuckets(0.1, 2, 18), // up to 4 hours
	}, []string{"outcome"})}
	for _, o := range outcomes {
		r.seconds.WithLabelValues(string(o))
	}
	return r
}

// Observer returns the observer of the store.
func (m *Metrics) Observer() tapedeck.Observer {
	return tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
		events, bytes := 0, 0
		m.runs.mu.Lock()
		for i := range commits {
			c := &commits[i]
			if c.Session.Kind == tapedeck.KindView { // checkpoints are no events
				continue
			}
			for _, r := range c.Records {
				bytes += len(r.Data)
			}
			events += len(c.Records)
			m.runs.committed(c)
		}
		m.runs.mu.Unlock()
		m.events.Add(float64(events))
		m.bytes.Add(float64(bytes))
	}}
}

// committed follows a commit. The caller holds the lock.
func (r *runs) committed(c *tapedeck.Commit) {
	s := &c.Session
	a := r.active[s.Gen]
	if a == nil && len(s.Runs) == 0 && len(s.Inputs) == 0 { // as almost always
		return
	}
	if a != nil && !c.Gone {
		r.end(a, c)
	}
	r.set(s, c.Gone)
}

// set notes what happens in a session now.
func (r *runs) set(s *tapedeck.Session, removed bool) {
	if removed || len(s.Runs) == 0 && len(s.Inputs) == 0 {
		delete(r.active, s.Gen)
		return
	}
	a := r.active[s.Gen]
	if a == nil {
		a = &activity{}
		r.active[s.Gen] = a
	}
	a.open, a.waiting, a.inputs = s.Runs, len(s.Waiting) > 0, len(s.Inputs)
}

// end measures the runs that were open before a commit and are not any more.
func (r *runs) end(a *activity, c *tapedeck.Commit) {
	ended := 0
	for i := range a.open {
		if !isOpen(c.Session.Runs, a.open[i].Invocation) {
			ended++
		}
	}
	for i := 0; i < len(c.Records) && ended > 0; i++ {
		e, err := c.Records[i].Event()
		if err != nil || e.Type != tapedeck.RunFinished && e.Type != tapedeck.RunError {
			continue
		}
		if began := findRun(a.open, e.Invocation); began != nil && !isOpen(c.Session.Runs, e.Invocation) {
			r.seconds.WithLabelValues(string(outcome(&e))).Observe(max(0, e.Time.Sub(began.Started).Seconds()))
			ended--
		}
	}
}

// outcome returns the status that a terminal event gives to a session.
func outcome(e *tapedeck.Event) tapedeck.Status {
	var s tapedeck.Session
	s.Apply(e)
	return s.Status
}

func isOpen(runs []tapedeck.OpenRun, invocation string) bool { return findRun(runs, invocation) != nil }

// findRun returns the run of an invocation, nil if it is not among runs.
func findRun(runs []tapedeck.OpenRun, invocation string) *tapedeck.OpenRun {
	for i := range runs {
		if runs[i].Invocation == invocation {
			return &runs[i]
		}
	}
	return nil
}

// A Catalogue lists sessions.
type Catalogue interface {
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
}

// Load reads what was open when the server started. Call it before the first append.
func (m *Metrics) Load(ctx context.Context, c Catalogue) error {
	for _, f := range []tapedeck.Filter{{OpenRun: true}, {Inputs: true}} {
		for f.Limit = 1000; ; {
			page, err := c.List(ctx, f)
			if err != nil {
				return err
			}
			m.runs.mu.Lock()
			for i := range page.Sessions {
				m.runs.set(&page.Sessions[i], false)
			}
			m.runs.mu.Unlock()
			if f.Cursor = page.Next; f.Cursor == "" {
				break
			}
		}
	}
	return nil
}

// now counts the open runs of sessions that do not wait for people, those of sessions
// that do, and the inputs.
func (r *runs) now() (running, waiting, inputs int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		if a.waiting {
			waiting += len(a.open)
		} else {
			running += len(a.open)
		}
		inputs += a.inputs
	}
	return running, waiting, inputs
}
