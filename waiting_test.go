package tapedeck_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// fold returns the entry that lines of events result in: a type, an invocation, a thread
// and the data, of which all but the type may be "-".
func fold(lines ...string) tapedeck.Session {
	var s tapedeck.Session
	for i, line := range lines {
		var word [4]string
		copy(word[:], strings.SplitN(line, " ", 4))
		for i := range word {
			word[i] = strings.TrimPrefix(word[i], "-")
		}
		s.Apply(&tapedeck.Event{Offset: int64(i), Time: noon.Add(time.Duration(i) * time.Second), Type: word[0], Invocation: word[1], Thread: word[2], Data: []byte(word[3])})
	}
	return s
}

// A session waits exactly while an open run has a question without an answer.
func TestSessionWaiting(t *testing.T) {
	const run, other = `RUN_STARTED i - {"runId":"i"}`, `RUN_STARTED j b {"runId":"j"}`
	const ask = `permission.requested i - {"id":"p","message":"Delete it?","action":{"tool":"Bash","command":"rm x"}}`
	const askOther = `permission.requested j b {"id":"q","message":"And this?"}`
	for name, test := range map[string]struct {
		lines  []string
		status tapedeck.Status
		want   string // ids of the questions
	}{
		"asked":                       {[]string{run, ask}, tapedeck.StatusWaiting, "p"},
		"asked without an invocation": {[]string{run, `permission.requested - - {"id":"p"}`}, tapedeck.StatusWaiting, "p"},
		"no run":                      {[]string{ask}, "", ""},
		"a run elsewhere":             {[]string{other, ask}, tapedeck.StatusRunning, ""},
		"a question without an id":    {[]string{run, `permission.requested i - {"message":"?"}`}, tapedeck.StatusRunning, ""},
		"an action of another shape":  {[]string{run, `permission.requested i - {"id":"p","action":5}`}, tapedeck.StatusWaiting, "p"},
		"answered":                    {[]string{run, ask, `permission.answered - - {"id":"p","option":"yes"}`}, tapedeck.StatusRunning, ""},
		"answered by name":            {[]string{run, ask, `permission.answered i - {"id":"p","option":"yes"}`}, tapedeck.StatusRunning, ""},
		"withdrawn":                   {[]string{run, ask, `permission.answered i - {"id":"p","outcome":"cancelled"}`}, tapedeck.StatusRunning, ""},
		"another answer":              {[]string{run, ask, `permission.answered - - {"id":"z"}`}, tapedeck.StatusWaiting, "p"},
		"an answer to another run":    {[]string{run, ask, `permission.answered j - {"id":"p"}`}, tapedeck.StatusWaiting, "p"},
		"an answer elsewhere":         {[]string{run, ask, `permission.answered - b {"id":"p"}`}, tapedeck.StatusWaiting, "p"},
		"two questions":               {[]string{run, other, ask, askOther}, tapedeck.StatusWaiting, "p q"},
		"one of two is answered":      {[]string{run, other, ask, askOther, `permission.answered - - {"id":"p"}`}, tapedeck.StatusWaiting, "q"},
		"the run ends":                {[]string{run, ask, `RUN_FINISHED i - {"runId":"i"}`}, tapedeck.StatusComplete, ""},
		"the run is cancelled":        {[]string{run, ask, `RUN_FINISHED i - {"outcome":{"type":"cancelled"}}`}, tapedeck.StatusCancelled, ""},
		"one of two runs ends":        {[]string{run, other, ask, `RUN_FINISHED j b {}`}, tapedeck.StatusWaiting, "p"},
		"the one that waits ends":     {[]string{run, other, ask, `RUN_ERROR i - {"message":"m"}`}, tapedeck.StatusRunning, ""},
		"a run begins beside it":      {[]string{run, ask, other}, tapedeck.StatusWaiting, "p"},
		"forked":                      {[]string{run, ask, `session.forked - - {"parent":"p","at":2,"status":"interrupted"}`}, tapedeck.StatusInterrupted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fold(test.lines...)
			var ids []string
			for _, q := range s.Waiting {
				ids = append(ids, q.ID)
			}
			if got := strings.Join(ids, " "); got != test.want || s.Status != test.status {
				t.Errorf("it has %q and is %q, want %q and %q", got, s.Status, test.want, test.status)
			}
			if (s.Status == tapedeck.StatusWaiting) != (len(s.Waiting) > 0) {
				t.Errorf("the status is %q with %d questions", s.Status, len(s.Waiting))
			}
		})
	}
	want := tapedeck.OpenQuestion{ID: "p", Thread: tapedeck.MainThread, Invocation: "i", Offset: 1, Asked: noon.Add(time.Second), Tool: "Bash", Message: "Delete it?"}
	if d := cmp.Diff([]tapedeck.OpenQuestion{want}, fold(run, ask).Waiting); d != "" {
		t.Error(d)
	}
	b, err := json.Marshal(fold(run, ask).Waiting)
	if got := `[{"id":"p","thread":"main","invocation":"i","offset":1,"tool":"Bash","message":"Delete it?","asked_at":"2026-01-05T12:34:57.789Z"}]`; string(b) != got || err != nil {
		t.Errorf("got %s, %v", b, err)
	}
}

// Copies of an entry do not see later questions.
func TestSessionWaitingIsNotShared(t *testing.T) {
	s := fold(`RUN_STARTED i - {"runId":"i"}`, `permission.requested i - {"id":"p"}`, `permission.requested i - {"id":"q"}`)
	old := s
	s.Apply(&tapedeck.Event{Type: tapedeck.PermissionAnswered, Data: []byte(`{"id":"p"}`)})
	s.Apply(&tapedeck.Event{Type: tapedeck.SessionRedacted, Data: []byte(`{"offsets":[{"from":0,"to":9}]}`)})
	if len(old.Waiting) != 2 || old.Waiting[0].ID != "p" || len(s.Waiting) != 1 {
		t.Errorf("the copy has %v, the entry %v", old.Waiting, s.Waiting)
	}
}

// What an entry has of questions is bounded, and an erasure removes it.
func TestSessionWaitingIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 500)
	lines := []string{`RUN_STARTED i - {"runId":"i"}`, fmt.Sprintf(`permission.requested i - {"id":"long","message":%q,"action":{"tool":%q}}`, long, long)}
	for i := range 1100 {
		lines = append(lines, fmt.Sprintf(`permission.requested i - {"id":"p%d","action":{"command":"ls %d"}}`, i, i))
	}
	s := fold(lines...)
	q := s.Waiting[0]
	if len(s.Waiting) != 1000 || len(q.Message) > 200 || len(q.Tool) > 200 || !utf8.ValidString(q.Message) || !strings.HasSuffix(q.Message, "…") {
		t.Errorf("%d questions; the first is %+v", len(s.Waiting), q)
	}
	if m := s.Waiting[1].Message; m != "ls 0" {
		t.Errorf("a question without a text has the message %q", m)
	}
	s.Apply(&tapedeck.Event{Type: tapedeck.SessionRedacted, Data: []byte(`{"offsets":[{"from":1,"to":2}]}`)})
	if q := s.Waiting[0]; q.Message+q.Tool != "" || q.ID != "long" || s.Waiting[1].Message == "" {
		t.Errorf("after the erasure: %+v, %+v", q, s.Waiting[1])
	}
}
