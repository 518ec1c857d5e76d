package frame

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

func TestParse(t *testing.T) {
	five := int64(5)
	for line, want := range map[string]Request{
		`{"type":"append","seq":0,"session":"s","events":[{"type":"a.b"},{"type":"c.d","data":{"x":1}}]}`: {
			Type: TypeAppend, Session: "s", Events: []tapedeck.Event{{Type: "a.b"}, {Type: "c.d", Data: []byte(`{"x":1}`)}},
		},
		`{ "seq" : 7 , "producer" : {"seq":2,"epoch":1,"id":"p"}, "expect":5, "type" : "append" }`: {
			Type: TypeAppend, Seq: 7, Expect: &five, Producer: &tapedeck.Producer{ID: "p", Epoch: 1, Seq: 2},
		},
		`{"type":"follow","session":"s","from":3,"channels":["chunks"],"until":"terminal"}`: {
			Type: TypeFollow, Seq: -1, Session: "s", From: 3, Channels: []string{"chunks"}, Until: "terminal",
		},
		`{"type":"unfollow","session":"s"}`: {Type: TypeUnfollow, Seq: -1, Session: "s"},
	} {
		got, err := Parse([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", line, d)
		}
	}
}

func TestParseHostile(t *testing.T) {
	for line, want := range map[string]string{
		`x`: "one JSON object", `[]`: "one JSON object", `{"type":"append"`: "one JSON object",
		`{"type":"append","seq":0}x`: "one JSON object", `{}`: `no frames of type ""`, `{"type":7}`: "no frames of type",
		`{"type":"ack","seq":1}`: `no frames of type "ack"`, `{"type":"` + strings.Repeat("x", 500) + `"}`: "…",
		`{"type":"append"}`: "needs its number", `{"type":"append","seq":-1}`: "whole number", `{"type":"append","seq":1.5}`: "whole number",
		`{"type":"append","seq":99999999999999999999}`: "whole number", `{"type":"append","seq":"1"}`: "whole number",
		`{"type":"append","seq":0,"exp":1}`: `cannot have the member "exp"`, `{"type":"append","seq":0,"session":"../x"}`: "session's id",
		`{"type":"append","seq":0,"events":{}}`: "array of events", `{"type":"append","seq":0,"events":[{"type":"a"},{"kind":"b"}]}`: "event 2",
		`{"type":"append","seq":0,"events":["x"]}`: "event 1", `{"type":"append","seq":0,"producer":{"id":"p"}}`: "has id, epoch and seq",
		`{"type":"append","seq":0,"producer":{"id":"p","epoch":-1,"seq":0}}`: "whole number", `{"type":"append","seq":0,"producer":null}`: "has id, epoch and seq",
		`{"type":"append","seq":0,"producer":{"id":"p","epoch":0,"seq":0,"x":1}}`: `not "x"`,
		`{"type":"follow","session":"s","from":-1}`:                               "whole number", `{"type":"follow","session":"s","types":[]}`: "array of names",
		`{"type":"follow","session":"s","types":[1]}`: "a name in it", `{"type":"follow","session":"s","until":"x"}`: "only be",
		`{"type":"follow","threads":[` + strings.Repeat(`"a",`, 100) + `"a"]}`: "more than 100",
	} {
		if _, err := Parse([]byte(line)); err == nil || !strings.Contains(err.Error(), want) || tapedeck.KindOf(err) == tapedeck.Internal {
			t.Errorf("%.80s: %v, want %q", line, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"append","seq":0,"session":"s","events":[{"type":"a.b","data":{"x":[1]}}],"producer":{"id":"p","epoch":0,"seq":0},"expect":1}`))
	f.Add([]byte(`{"type":"follow","from":3,"channels":["chunks"]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if r, err := Parse(line); err == nil && (allowed[r.Type] == nil || r.Seq < 0 && r.Type == TypeAppend) {
			t.Errorf("%q: %+v", line, r)
		}
	})
}

// TestAnswers: what a server writes, a client reads.
func TestAnswers(t *testing.T) {
	refused := &tapedeck.AppendError{Refusal: tapedeck.RefusedGap, Head: 4, Seq: 2, Err: tapedeck.Errorf(tapedeck.Conflict, "a \"gap\"").WithHint("h")}
	var b []byte
	b = AppendAck(b, 3, "s", tapedeck.Appended{First: 5, Next: 7, Head: 7})
	b = AppendAck(b, 4, "", tapedeck.Appended{First: -1, Next: -1, Head: 9, Duplicate: true})
	b = AppendError(b, 5, "s", refused.Err, refused)
	b = AppendError(b, -1, "", tapedeck.Errorf(tapedeck.Invalid, "no"), nil)
	want := []Answer{
		{Type: TypeAck, Seq: 3, Session: "s", Done: tapedeck.Appended{First: 5, Next: 7, Head: 7}},
		{Type: TypeAck, Seq: 4, Done: tapedeck.Appended{First: -1, Next: -1, Head: 9, Duplicate: true}},
		{Type: TypeError, Seq: 5, Session: "s"},
		{Type: TypeError, Seq: -1},
	}
	lines := slices.Collect(Lines(append([]byte("\n \n"), b...)))
	if len(lines) != len(want) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		got, err := ParseAnswer(line)
		if err != nil {
			t.Fatal(err)
		}
		if a := (*tapedeck.AppendError)(nil); i == 2 && (!errors.As(got.Err, &a) || !reflect.DeepEqual(a.Err, refused.Err) || a.Seq != 2 || a.Head != 4 || a.Refusal != refused.Refusal) {
			t.Errorf("the refusal is %#v", got.Err)
		}
		if (got.Err != nil) != (want[i].Type == TypeError) {
			t.Errorf("%s: the error is %v", line, got.Err)
		}
		if got.Err = nil; want[i].Type == TypeError {
			got.Done = tapedeck.Appended{}
		}
		if d := cmp.Diff(want[i], got); d != "" {
			t.Errorf("%s (-want +got)\n%s", line, d)
		}
	}
}
