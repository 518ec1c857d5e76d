package tapedeck

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 5, 12, 34, 56, 789e6, time.UTC)

// anyEvent draws an event that passes Check, in its decoded form.
func anyEvent(t *rapid.T) Event {
	id := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[A-Za-z0-9_][-A-Za-z0-9_.:@]{0,40}`))
	name := rapid.StringMatching(`[^\p{Cc}]{0,20}`)
	e := Event{
		Offset:     rapid.OneOf(rapid.Int64Range(0, 1e6), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "offset"),
		Type:       rapid.OneOf(rapid.SampledFrom(eventTypes[:]), rapid.StringMatching(`[a-z]{1,10}\.[a-z]{1,10}`)).Draw(t, "type"),
		Channel:    rapid.SampledFrom([]string{ChannelChunks, ChannelTerminal, ChannelSession, "other"}).Draw(t, "channel"),
		Time:       time.UnixMilli(rapid.Int64Range(-62167219200000, 253402300799999).Draw(t, "ms")).UTC(),
		Thread:     id.Draw(t, "thread"),
		Invocation: id.Draw(t, "invocation"),
		Instance:   id.Draw(t, "instance"),
		Turn:       rapid.OneOf(rapid.Just(0), rapid.IntRange(1, math.MaxInt64)).Draw(t, "turn"),
		Actor:      name.Draw(t, "actor"),
	}
	if rapid.Bool().Draw(t, "has data") {
		data, _ := json.Marshal(map[string]any{name.Draw(t, "member"): rapid.String().Draw(t, "value"), "n": []int{1}})
		e.Data = data
	}
	return e
}

func TestEnvelopeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		if err := e.Check(); err != nil {
			t.Fatalf("drew an event that cannot be appended: %v", err)
		}
		d := e.draft()
		r := d.Record(e.Offset)
		if got, err := r.Event(); err != nil || !cmp.Equal(got, e) {
			t.Fatalf("%s: %v\n%s", r.Data, err, cmp.Diff(e, got))
		}
		var std Event
		if err := json.Unmarshal(r.Data, &std); err != nil || !cmp.Equal(std, e) {
			t.Fatalf("encoding/json reads %s as %+v, %v", r.Data, std, err)
		}
		if bytes.ContainsAny(r.Data, "\r\n") || r.Offset != e.Offset {
			t.Fatalf("offset %d of %q", r.Offset, r.Data)
		}
		if !json.Valid(r.Data) || d.Len() > len(r.Data) || len(r.Data)-d.Len() > headroom {
			t.Fatalf("draft of %d bytes became %q", d.Len(), r.Data)
		}
	})
}

func TestDraftIsReadByScan(t *testing.T) {
	for _, e := range []Event{
		{Type: TextMessageContent, Channel: ChannelChunks, Time: noon},
		{Offset: 999999999999999999, Type: Custom, Channel: ChannelAgentState, Time: noon, Thread: "t", Invocation: "i", Instance: "n", Turn: 2, Actor: "user:ada", Data: []byte(`{"a":"}\"{"}`)},
		{Type: "x.y", Channel: "z", Time: noon, Actor: "user:Zoë 界"},
		{Type: "x.y", Channel: "z", Time: noon, Data: []byte(`{}`)},
	} {
		d := e.draft()
		var got Event
		if b := d.Record(e.Offset).Data; !got.scan(b) || !cmp.Equal(got, e) {
			t.Errorf("scan of %s gives %+v", b, got)
		}
	}
}

func TestEnvelopeEscapesHTML(t *testing.T) {
	e := Event{Type: Custom, Channel: ChannelAgentState, Time: noon, Actor: "user:<a&b>\"\u2028"}
	want := `{"offset":0,"type":"CUSTOM","channel":"agentState","timestamp":"2026-01-05T12:34:56.789Z","actor":"user:\u003ca\u0026b\u003e\"\u2028"}`
	if got := string(e.draft().Record(0).Data); got != want {
		t.Errorf("got %s", got)
	}
}

func TestDraftRecordTwice(t *testing.T) {
	e := Event{Type: Custom, Channel: ChannelAgentState, Time: noon}
	d := e.draft()
	for _, offset := range []int64{math.MaxInt64, 0, 42, 1234567890123456789, 7} {
		want := append([]byte(`{"offset":`), json.Number(jsonInt(offset))...)
		if r := d.Record(offset); !bytes.HasPrefix(r.Data, append(want, ',')) || r.Offset != offset {
			t.Errorf("record at %d is %s", offset, r.Data)
		}
	}
	chunk := Draft{buf: []byte("raw"), chunk: true}
	if r := chunk.Record(3); string(r.Data) != "raw" || r.Offset != 3 || chunk.Len() != 3 {
		t.Errorf("chunk became %+v, len %d", r, chunk.Len())
	}
}

func jsonInt(n int64) string { b, _ := json.Marshal(n); return string(b) }

func TestDecodeEnvelope(t *testing.T) {
	full := Event{
		Offset: 1234567890123456789, Type: Custom, Channel: "agentState", Time: noon, Thread: "a", Invocation: "b",
		Instance: "c", Turn: 3, Actor: "d", Data: []byte(`{"x": 1}`),
	}
	for name, test := range map[string]struct {
		in   string
		want Event
	}{
		"19 digits":     {`{"offset":1234567890123456789,"type":"CUSTOM","channel":"agentState","timestamp":"2026-01-05T12:34:56.789Z","thread":"a","invocation":"b","instance":"c","turn":3,"actor":"d","data":{"x": 1}}`, full},
		"any order":     {` { "data":{"x": 1}, "actor":"d","turn":3,"instance":"c","invocation":"b","thread":"a","timestamp":"2026-01-05T13:34:56.789123+01:00","channel":"agentState","type":"CUSTOM","offset":1234567890123456789 } `, full},
		"escaped names": {`{"t\u0079pe":"C\u0055STOM"}`, Event{Type: Custom}},
		"no fraction":   {`{"offset":1,"type":"T","channel":"c","timestamp":"2026-01-05T12:34:56Z"}`, Event{Offset: 1, Type: "T", Channel: "c", Time: noon.Add(-789 * time.Millisecond)}},
		"nulls":         {`{"type":"CUSTOM","data":null,"actor":null,"timestamp":null}`, Event{Type: Custom}},
		"null":          {`null`, Event{}},
		"fixed form":    {`{"offset":1,"type":"T","channel":"c","timestamp":"2026-01-05T12:34:56.700Z"}`, Event{Offset: 1, Type: "T", Channel: "c", Time: noon.Add(-89 * time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got Event
			if err := json.Unmarshal([]byte(test.in), &got); err != nil || !cmp.Equal(got, test.want) {
				t.Errorf("%v\n%s", err, cmp.Diff(test.want, got))
			}
		})
	}
}

func TestDecodeEnvelopeRefuses(t *testing.T) {
	const head = `{"offset":1,"type":"T","channel":"c","timestamp":"2026-01-05T12:34:56.789Z"`
	for name, in := range map[string]string{
		"unknown member":          `{"type":"T","seq":1}`,
		"unknown after data":      head + `,"data":{},"seq":{}}`,
		"member in other case":    `{"Type":"T"}`,
		"data twice":              head + `,"data":{}},"data":{}}`,
		"garbage after it":        head + `} {}`,
		"garbage after data":      head + `,"data":{}}}`,
		"array":                   `[]`,
		"string":                  `"T"`,
		"nothing":                 ``,
		"half":                    head + `,"data":{"a":"`,
		"float offset":            `{"offset":1.5}`,
		"offset beyond int64":     `{"offset":12345678901234567890}`,
		"string turn":             `{"turn":"1"}`,
		"month that is not":       `{"offset":1,"type":"T","channel":"c","timestamp":"2026-13-01T12:34:56.789Z"}`,
		"hour that is not":        `{"offset":1,"type":"T","channel":"c","timestamp":"2026-02-01T24:34:56.789Z"}`,
		"minute that is not":      `{"offset":1,"type":"T","channel":"c","timestamp":"2026-02-01T12:60:56.789Z"}`,
		"second that is not":      `{"offset":1,"type":"T","channel":"c","timestamp":"2026-02-01T12:34:60.789Z"}`,
		"letter in time":          `{"offset":1,"type":"T","channel":"c","timestamp":"2026-02-01T12:34:5x.789Z"}`,
		"day that is not":         `{"offset":1,"type":"T","channel":"c","timestamp":"2026-02-30T12:34:56.789Z"}`,
		"not UTF-8":               "{\"actor\":\"\xff\"}",
		"not UTF-8 in fixed form": "{\"offset\":1,\"type\":\"T\xff\",\"channel\":\"c\",\"timestamp\":\"2026-01-05T12:34:56.789Z\"}",
		"line end in a string":    "{\"offset\":1,\"type\":\"T\n\",\"channel\":\"c\",\"timestamp\":\"2026-01-05T12:34:56.789Z\"}",
		"too deep":                `{"data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			var e Event
			err := e.UnmarshalJSON([]byte(in))
			var known *Error
			if KindOf(err) != Invalid || !errors.As(err, &known) {
				t.Fatalf("got %v (%s) and %+v", err, KindOf(err), e)
			}
			if strings.Contains(err.Error(), "json:") {
				t.Errorf("the error tells of our insides: %v", err)
			}
		})
	}
}

// TestDecodedEventKeepsItsData checks that an event does not change when a
// decoder reuses its buffer.
func TestDecodedEventKeepsItsData(t *testing.T) {
	buf := []byte(`{"offset":1,"type":"T","channel":"c","timestamp":"2026-01-05T12:34:56.789Z","data":{"n":1}}`)
	var e Event
	if err := e.UnmarshalJSON(buf); err != nil {
		t.Fatal(err)
	}
	clear(buf)
	if string(e.Data) != `{"n":1}` {
		t.Errorf("data became %q", e.Data)
	}
}

func TestMarshalRefusesBadData(t *testing.T) {
	e := Event{Type: "T", Data: []byte(`{"a":`)}
	if _, err := e.MarshalJSON(); KindOf(err) != Invalid {
		t.Errorf("got %v", err)
	}
}

func TestRecordOfNoEvent(t *testing.T) {
	_, err := Record{Offset: 7, Data: []byte(`{"x":1}`)}.Event()
	if KindOf(err) != Internal || !strings.Contains(err.Error(), "offset 7") || errors.Unwrap(err) == nil {
		t.Errorf("got %v, cause %v", err, errors.Unwrap(err))
	}
}

// FuzzEnvelope compares scan with parseEvent: what scan accepts, parseEvent
// must accept and read in the same way, and the event must survive encoding and
// decoding.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{
		`{"offset":0,"type":"RUN_STARTED","channel":"agentState","timestamp":"2026-01-05T12:34:56.789Z","thread":"t","invocation":"i","instance":"n","turn":1,"actor":"user:a","data":{"a":[{"b":"}"}]}}`,
		`{"offset":12345678901234567,"type":"x","channel":"c","timestamp":"0000-01-05T12:34:56.789Z"}`,
		`{"offset":1,"type":"x","channel":"c","timestamp":"2026-01-05T12:34:56,789Z","data":{}}`,
		`{"offset":1,"type":"x","channel":"c","timestamp":"2026-01-05T12:34:56.789Z","data":{"a":"\\"},"b":1}`,
		`{"type":"a\nb"}`, `{"data":{}}`, `{"offset":-1}`, ` null `, `{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var scanned Event
		fast := scanned.scan(b)
		parsed, err := parseEvent(b)
		if fast && json.Valid(b) && utf8.Valid(b) {
			if err != nil || !cmp.Equal(scanned, parsed) {
				t.Fatalf("scan and parse differ: %v\n%s", err, cmp.Diff(parsed, scanned))
			}
		}
		if err != nil || parsed.Check() != nil || parsed.Offset < 0 {
			return
		}
		again, err := json.Marshal(parsed)
		if err != nil {
			t.Fatal(err)
		}
		var back Event
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%s cannot be read: %v", again, err)
		}
		back.Data, parsed.Data = canonical(t, back.Data), canonical(t, parsed.Data)
		if !cmp.Equal(back, parsed) {
			t.Fatal(cmp.Diff(parsed, back))
		}
	})
}

// canonical returns JSON with sorted members and without unnecessary escapes.
func canonical(t testing.TB, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
