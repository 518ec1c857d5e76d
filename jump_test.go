package tapedeck

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJump(t *testing.T) {
	at := func(offset int64, typ, data string) Event {
		return Event{Type: typ, Offset: offset, Data: []byte(data)}
	}
	for name, test := range map[string]struct {
		e    Event
		want Jump
	}{
		"rewound":     {at(9, SessionRewound, `{"marker":"m","toOffset":3,"previous":2}`), Jump{9, 3, "", "m", 2, nil, false, false}},
		"of a thread": {at(9, SessionRewound, `{"marker":"m","toOffset":3,"thread":"t"}`), Jump{9, 3, "t", "m", 0, nil, false, false}},
		"cleared":     {at(9, SessionCleared, `{"marker":"m"}`), Jump{9, 0, "", "m", 0, nil, false, false}},
		"overwritten": {at(9, SessionOverwritten, `{"marker":"m","fromOffset":4}`), Jump{9, 4, "", "m", 0, nil, false, false}},
		"attempt":     {Event{Type: AttemptSuperseded, Offset: 9, Thread: "t", Data: []byte(`{"marker":"m","thread":"u","with":["v"],"fromOffset":4,"previous":2}`)}, Jump{9, 4, "t", "", 2, nil, true, true}},
		"ahead":       {at(9, SessionRewound, `{"toOffset":30}`), Jump{9, 9, "", "", 0, nil, false, false}},
		"below":       {at(9, SessionRewound, `{"toOffset":-3,"previous":-1}`), Jump{9, 0, "", "", 0, nil, false, false}},
		"a loop":      {at(9, SessionRewound, `{"toOffset":3,"previous":9}`), Jump{9, 3, "", "", 0, nil, false, false}},
		"nonsense":    {at(9, SessionCleared, `{"marker":5}`), Jump{9, 0, "", "", 0, nil, false, false}},
	} {
		got, ok := test.e.Jump()
		if !ok || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, %v", name, ok, cmp.Diff(test.want, got))
		}
	}
	e := at(1, SessionRenamed, `{}`)
	if _, ok := e.Jump(); ok {
		t.Error("a rename is a jump")
	}
}

func TestSessionJumps(t *testing.T) {
	s := Session{Status: StatusFailed}
	s.Apply(&Event{Type: SessionRewound, Offset: 7, Data: []byte(`{"marker":"m","status":"cancelled","resumable":false}`)})
	if s.LastJump != 7 || s.Status != StatusCancelled || s.Resumable == nil || *s.Resumable {
		t.Errorf("after a rewind: %+v", s)
	}
	s.Runs = []OpenRun{{Invocation: "i"}}
	s.Status = StatusRunning
	s.Apply(&Event{Type: SessionCleared, Offset: 9, Data: []byte(`{"marker":"m","thread":"t","status":"idle"}`)})
	if s.LastJump != 9 || s.Status != StatusRunning {
		t.Errorf("while another thread runs: %+v", s)
	}
	f := Session{Status: StatusRunning, Runs: []OpenRun{{Invocation: "of the parent"}}}
	f.Apply(&Event{Type: SessionForked, Offset: 12, Data: []byte(`{"parent":"p","at":12,"previous":9,"copy":true,"status":"cancelled","resumable":true}`)})
	if len(f.Runs) > 0 || f.LastJump != 9 || !f.Copy || f.Status != StatusCancelled || f.Resumable == nil || !*f.Resumable {
		t.Errorf("a fork: %+v", f)
	}
}
