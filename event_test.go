package tapedeck

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestEventCheck(t *testing.T) {
	long := strings.Repeat("x", maxIDLen+1)
	for name, test := range map[string]struct {
		e  Event
		ok bool
	}{
		"minimal":            {Event{Type: Custom}, true},
		"full":               {Event{Type: "a.b", Channel: "c", Time: noon, Thread: "t", Invocation: "i", Instance: "n", Turn: 1, Actor: "user:Zoë", Data: []byte(`{"a":"é\u0000"}`)}, true},
		"space around":       {Event{Type: "T", Data: []byte(" {} \n")}, true},
		"no type":            {Event{}, false},
		"path as type":       {Event{Type: "../a"}, false},
		"long thread":        {Event{Type: "T", Thread: long}, false},
		"slash in channel":   {Event{Type: "T", Channel: "a/b"}, false},
		"space in run":       {Event{Type: "T", Invocation: "a b"}, false},
		"nul in instance":    {Event{Type: "T", Instance: "a\x00"}, false},
		"turn below 0":       {Event{Type: "T", Turn: -1}, false},
		"actor with ESC":     {Event{Type: "T", Actor: "\x1b[0m"}, false},
		"time after 9999":    {Event{Type: "T", Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))}, false},
		"time before 0":      {Event{Type: "T", Time: time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600))}, false},
		"year far":           {Event{Type: "T", Time: time.Unix(math.MaxInt32*1e4, 0)}, false},
		"data of spaces":     {Event{Type: "T", Data: []byte("  ")}, false},
		"data an array":      {Event{Type: "T", Data: []byte(`[]`)}, false},
		"data null":          {Event{Type: "T", Data: []byte(`null`)}, false},
		"data half":          {Event{Type: "T", Data: []byte(`{"a":1`)}, false},
		"data twice":         {Event{Type: "T", Data: []byte(`{}{}`)}, false},
		"data not UTF-8":     {Event{Type: "T", Data: []byte("{\"a\":\"\xff\"}")}, false},
		"data with raw NUL":  {Event{Type: "T", Data: []byte("{\"a\":\"\x00\"}")}, false},
		"data deep":          {Event{Type: "T", Data: []byte(`{"a":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5) + `}`)}, false},
		"data with NaN":      {Event{Type: "T", Data: []byte(`{"a":NaN}`)}, false},
		"data with comments": {Event{Type: "T", Data: []byte(`{/**/}`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.e.Check()
			if test.ok && err != nil || !test.ok && KindOf(err) != Invalid {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A text without its quotes in a raw member is the fault of a program: the error names
// the member.
func TestBadDataNamesMember(t *testing.T) {
	for data, want := range map[string]string{
		`{"id":"m","content":plain text}`: `the data of T is not a JSON object: the value of its member "content" is not JSON`,
		`{"content":}`:                    `the value of its member "content" is not JSON`,
		`{"a":1,"b":2`:                    "the data of T is not a JSON object",
		`{"a":1} {}`:                      "the data of T is not a JSON object",
		`{5:1}`:                           "the data of T is not a JSON object",
		`["content"]`:                     "the data of T is not a JSON object",
	} {
		e := Event{Type: "T", Data: []byte(data)}
		if err := e.Check(); KindOf(err) != Invalid || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", data, err, want)
		}
	}
}

func TestThreadName(t *testing.T) {
	if got := (&Event{}).ThreadName(); got != MainThread {
		t.Errorf("no thread is called %q", got)
	}
	if got := (&Event{Thread: "b"}).ThreadName(); got != "b" {
		t.Errorf("thread b is called %q", got)
	}
}

func TestDrafts(t *testing.T) {
	now := time.Date(2026, 1, 1, 1, 0, 0, 999999, time.FixedZone("", 3600))
	a := Append{
		Chunks: [][]byte{[]byte("raw\n")},
		Events: []Event{
			{Type: TextMessageStart, Thread: MainThread, Channel: "wrong", Offset: 99},
			{Type: "my.own", Channel: "mine", Time: noon.Add(time.Microsecond)},
			{Type: "my.own", Data: []byte("{\n\"a\" : [ \"\u2028 <\\\" \" , 1 ]\t}\r\n")},
		},
	}
	events, drafts, err := Drafts(a.Events, a.Chunks, now)
	if err != nil {
		t.Fatal(err)
	}
	if events[0].Channel != ChannelChunks || a.Events[0].Channel != "wrong" || !a.Events[2].Time.IsZero() {
		t.Errorf("the caller's events are %+v, those of the drafts %+v", a.Events, events)
	}
	want := []string{
		"raw\n",
		`{"offset":6,"type":"TEXT_MESSAGE_START","channel":"chunks","timestamp":"2026-01-01T00:00:00.000Z"}`,
		`{"offset":7,"type":"my.own","channel":"mine","timestamp":"2026-01-05T12:34:56.789Z"}`,
		`{"offset":8,"type":"my.own","channel":"agentState","timestamp":"2026-01-01T00:00:00.000Z","data":{"a":["` + "\u2028" + ` <\" ",1]}}`,
	}
	for i, d := range drafts {
		if got := string(d.Record(int64(i + 5)).Data); got != want[i] {
			t.Errorf("record %d is %s, want %s", i, got, want[i])
		}
	}
}

func TestDraftsRefuse(t *testing.T) {
	a := Append{Events: []Event{{Type: "T"}, {Type: "T", Thread: "a b"}}}
	_, _, err := Drafts(a.Events, a.Chunks, noon)
	var e *Error
	if !errors.As(err, &e) || e.Kind != Invalid || !strings.HasPrefix(e.Message, "event 2 of 2: ") || e.Hint == "" {
		t.Errorf("got %+v", err)
	}
	s := Spec{Events: []Event{{Type: ""}}}
	if _, _, err = Drafts(s.Events, s.Chunks, noon); KindOf(err) != Invalid || strings.Contains(err.Error(), "of 1") {
		t.Errorf("got %v", err)
	}
}

// A fakeLog returns pages of two records.
type fakeLog struct {
	Log
	records []Record
	fail    error
}

func (l fakeLog) Read(_ context.Context, _ string, r Range) (Page, error) {
	end := min(int(r.From)+2, len(l.records))
	return Page{Records: l.records[r.From:end], Next: int64(end), Head: int64(len(l.records))}, l.fail
}

func logOf(t testing.TB, events ...Event) fakeLog {
	t.Helper()
	_, drafts, err := Drafts(events, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	var l fakeLog
	for i, d := range drafts {
		l.records = append(l.records, d.Record(int64(i)))
	}
	return l
}

func TestEvents(t *testing.T) {
	l := logOf(t, Event{Type: "A"}, Event{Type: "B"}, Event{Type: "C"}, Event{Type: "D"}, Event{Type: "E"})
	read := func(l fakeLog, from int64, limit int) (got string, err error) {
		for e, fault := range Events(t.Context(), l, "s", from) {
			if got += e.Type; fault != nil || len(got) == limit {
				return got, fault
			}
		}
		return got, nil
	}
	for _, test := range []struct {
		from  int64
		limit int
		want  string
	}{{0, 9, "ABCDE"}, {3, 9, "DE"}, {5, 9, ""}, {0, 3, "ABC"}} {
		if got, err := read(l, test.from, test.limit); got != test.want || err != nil {
			t.Errorf("from %d, limit %d: %q, %v", test.from, test.limit, got, err)
		}
	}
	l.records[3].Data = []byte("?")
	if got, err := read(l, 0, 9); got != "ABC" || KindOf(err) != Internal {
		t.Errorf("with a broken record: %q, %v", got, err)
	}
	l.fail = Errorf(NotFound, "there is no session s")
	if got, err := read(l, 0, 9); got != "" || KindOf(err) != NotFound {
		t.Errorf("without a session: %q, %v", got, err)
	}
}

func TestUnpackNoData(t *testing.T) {
	var e Event
	if !e.Unpack(&struct{ ID string }{}) {
		t.Error("no data is not an object")
	}
}
