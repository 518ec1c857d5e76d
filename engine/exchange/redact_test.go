package exchange

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// log returns events from lines: a type, a space, and the data. All except those
// of the session and of terminals have one invocation.
func log(lines ...string) []tapedeck.Event {
	start := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	events := make([]tapedeck.Event, len(lines))
	for i, l := range lines {
		typ, data, _ := strings.Cut(l, " ")
		e := tapedeck.Event{Offset: int64(i), Type: typ, Channel: tapedeck.ChannelOf(typ), Time: start.Add(time.Duration(i) * time.Second), Data: json.RawMessage(data)}
		if e.Channel == "" {
			e.Channel = tapedeck.ChannelAgentState
		}
		if !strings.Contains(typ, ".") {
			e.Invocation, e.Turn = "inv_1", 1
		}
		events[i] = e
	}
	return events
}

func redactor(t testing.TB, in api.Redaction) *Redactor {
	t.Helper()
	r, err := NewRedactor(in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// redacted returns the data of events after a redaction.
func redacted(t testing.TB, r *Redactor, events []tapedeck.Event) []string {
	t.Helper()
	for i := range events {
		r.Learn(&events[i])
	}
	r.Learn(nil)
	var out []string
	for _, e := range events {
		e = r.Event(e)
		if !json.Valid(e.Data) && len(e.Data) > 0 {
			t.Fatalf("not JSON: %s", e.Data)
		}
		if err := payload.CheckData(&e); err != nil {
			t.Fatalf("%v: %s", err, e.Data)
		}
		out = append(out, string(e.Data))
	}
	return out
}

func TestRedactKeys(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"at any depth", `{"name":"x","value":{"a":[{"api_key":"k","b":1}]}}`, `{"name":"x","value":{"a":[{"api_key":"[redacted]","b":1}]}}`},
		{"in any spelling", `{"name":"x","value":{"apiKey":"k","API-KEY":{"a":1},"api_key":[1]}}`, `{"name":"x","value":{"apiKey":"[redacted]","API-KEY":"[redacted]","api_key":"[redacted]"}}`},
		{"nothing to hide", `{"name":"x","value":{"api_key":null,"apikey":""}}`, `{"name":"x","value":{"api_key":null,"apikey":""}}`},
		{"escaped name", `{"name":"x","value":{"api\u005fkey":"k"}}`, `{"name":"x","value":{"api\u005fkey":"[redacted]"}}`},
		{"another name", `{"name":"x","value":{"api_keys":"k"}}`, `{"name":"x","value":{"api_keys":"k"}}`},
		{"JSON in a string", `{"name":"x","value":"{\"api_key\": \"k\", \"b\": 1}"}`, `{"name":"x","value":"{\"api_key\": \"[redacted]\", \"b\": 1}"}`},
		{"JSON in JSON in a string", `{"name":"x","value":"{\"r\":\"{\\\"api_key\\\":\\\"k\\\"}\"}"}`, `{"name":"x","value":"{\"r\":\"{\\\"api_key\\\":\\\"[redacted]\\\"}\"}"}`},
		{"an object in a string", `{"name":"x","value":"a \"api_key\":{\"b\":[\"}\"]} c"}`, `{"name":"x","value":"a \"api_key\":\"[redacted]\" c"}`},
		{"cut off", `{"name":"x","value":"{\"api_key\": \"k"}`, `{"name":"x","value":"{\"api_key\": \"[redacted]"}`},
		{"quotes in prose", `{"name":"x","value":"say \"no\": {\"api_key\":5}"}`, `{"name":"x","value":"say \"no\": {\"api_key\":\"[redacted]\"}"}`},
		{"a header", `{"name":"x","value":[{"name":"Api-Key","value":"k"}]}`, `{"name":"x","value":[{"name":"Api-Key","value":"[redacted]"}]}`},
		{"a patch", `{"name":"x","value":[{"op":"add","path":"/a/api_key","value":"k"}]}`, `{"name":"x","value":[{"op":"add","path":"/a/api_key","value":"[redacted]"}]}`},
		{"spaces", `{ "name" : "x" , "value" : { "api_key" : "k" , "n" : 1.50 } }`, `{"name":"x","value":{"api_key":"[redacted]","n":1.50}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := redacted(t, redactor(t, api.Redaction{Keys: []string{"Api_Key"}}), log("CUSTOM "+tt.in))
			if got[0] != tt.want {
				t.Errorf("got  %s\nwant %s", got[0], tt.want)
			}
		})
	}
}

func TestRedactDeltas(t *testing.T) {
	events := log(
		`TEXT_MESSAGE_START {"messageId":"m"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"my key is sec"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"n","delta":"sec"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"r","cuts":[[1,0]]}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"et, and secret"}`,
		`TEXT_MESSAGE_END {"messageId":"m"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c","delta":"{\"pass"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c","delta":"word\":\"abc"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c","delta":"def\",\"x\":1}"}`,
		`TOOL_CALL_RESULT {"messageId":"r","toolCallId":"c","content":"the secret"}`,
		`RUN_ERROR {"message":"bad secret"}`,
		`terminal.output {"terminal":"t","data":"sec","cuts":[[1,0],[2,5]]}`,
		`terminal.output {"terminal":"t","data":"ret!"}`,
		`terminal.input {"terminal":"t","data":"s"}`,
		`terminal.input {"terminal":"t","data":"ecret"}`,
	)
	r := redactor(t, api.Redaction{Patterns: []string{"secret"}, Keys: []string{"password"}})
	want := []string{
		`{"messageId":"m"}`,
		`{"messageId":"m","delta":"my key is [redacted]"}`,
		`{"messageId":"n","delta":"sec"}`,
		`{"messageId":"m","delta":""}`,
		`{"messageId":"m","delta":", and [redacted]"}`,
		`{"messageId":"m"}`,
		`{"toolCallId":"c","delta":"{\"pass"}`,
		`{"toolCallId":"c","delta":"word\":\"[redacted]\""}`,
		`{"toolCallId":"c","delta":",\"x\":1}"}`,
		`{"messageId":"r","toolCallId":"c","content":"the [redacted]"}`,
		`{"message":"bad [redacted]"}`,
		`{"terminal":"t","data":"[redacted]"}`,
		`{"terminal":"t","data":"!"}`,
		`{"terminal":"t","data":"[redacted]"}`,
		`{"terminal":"t","data":""}`,
	}
	if d := cmp.Diff(want, redacted(t, r, events)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	p := r.Preview()
	if p.Events != 11 || p.Rules[0].Rule != "key password" || p.Rules[0].Count != 1 || p.Rules[1].Count != 6 {
		t.Errorf("%+v", p)
	}
	if got := p.Rules[0].Samples; len(got) != 1 || got[0].Offset != 7 || strings.Contains(got[0].Masked, "bc") {
		t.Errorf("%+v", got)
	}
}

// TestRedactStreams: a redacted text is the same however it is divided into
// deltas.
func TestRedactStreams(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "b", "ba", `"k":`, `"v"`, " ", "ä"}), 1, 30).Draw(rt, "parts")
		in := api.Redaction{Patterns: []string{"a+b", "ba"}, Keys: []string{"k"}}
		whole, _ := redactor(t, in).text(strings.Join(parts, ""))
		var lines []string
		for _, p := range parts {
			lines = append(lines, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":`+string(quoted(p))+`}`)
		}
		var got strings.Builder
		for _, data := range redacted(t, redactor(t, in), log(lines...)) {
			got.WriteString(str(object([]byte(data))["delta"]))
		}
		if got.String() != whole {
			rt.Fatalf("got %q, want %q", got.String(), whole)
		}
	})
}

// TestRedactLongStreams: an endless stream is not held as a whole, and its
// redaction is the same as that of the whole text, also where it is divided.
func TestRedactLongStreams(t *testing.T) {
	in := api.Redaction{Patterns: []string{"SECRET[0-9]+", "[0-9]{3,}"}, Keys: []string{"key"}}
	for shift := range 7 {
		text := strings.Repeat(" ", shift) + strings.Repeat(`SECRET0123456789 "key": "`+strings.Repeat("x", 83)+`" 4567 `, 6000)
		var events []tapedeck.Event
		for i := 0; i < len(text); i += 113 {
			e := log(`terminal.output {"terminal":"t","data":` + string(quoted(text[i:min(len(text), i+113)])) + `}`)[0]
			e.Offset = int64(len(events))
			events = append(events, e)
		}
		r := redactor(t, in)
		for i := range events {
			r.Learn(&events[i])
			if held := len(r.streams.order[0].text); held > streamWindow {
				t.Fatalf("%d bytes are held", held)
			}
		}
		r.Learn(nil)
		var got strings.Builder
		for _, e := range events {
			got.WriteString(str(object(r.Event(e).Data)["data"]))
		}
		if want, _ := redactor(t, in).text(text); got.String() != want {
			t.Errorf("shifted by %d it is not what it is as a whole", shift)
		}
	}
}

// TestRedactErased: an event that is erased during the export has nothing to
// redact.
func TestRedactErased(t *testing.T) {
	r := redactor(t, api.Redaction{Patterns: []string{"secret"}})
	e := log(`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"a secret, a secret"}`)[0]
	r.Learn(&e)
	r.Learn(nil)
	e.Data = []byte(`{"erased":true,"messageId":"m","delta":""}`)
	if got := r.Event(e); !json.Valid(got.Data) {
		t.Errorf("%s", got.Data)
	}
}

func TestRedactManyStreams(t *testing.T) {
	r := redactor(t, api.Redaction{Patterns: []string{"secret"}})
	var lines []string
	for i := range 3 * maxStreams {
		lines = append(lines, fmt.Sprintf(`TEXT_MESSAGE_CONTENT {"messageId":"m%d","delta":"sec"}`, i), fmt.Sprintf(`TEXT_MESSAGE_CONTENT {"messageId":"m%d","delta":"ret"}`, i))
	}
	events := log(lines...)
	for i := range events {
		r.Learn(&events[i])
		if n := len(r.streams.order); n > maxStreams || n != len(r.streams.byKey) {
			t.Fatalf("%d streams are held", n)
		}
	}
	r.Learn(nil)
	if n := r.Preview().Rules[0].Count; n != int64(3*maxStreams) {
		t.Errorf("%d found", n)
	}
}

func TestPresets(t *testing.T) {
	secrets := []string{
		"Authorization: Bearer abcdef0123456789ABCDEF", "AKIAIOSFODNN7EXAMPLE", "sk-proj-0123456789abcdef", "ghp_0123456789abcdefghijABCDEFGHIJ012345",
		"xoxb-1234567890-abcdef", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc-_", "postgres://bob:hunter2@db/x", "DB_PASSWORD=hunter2",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", `{"client-secret": "x"}`,
	}
	r := redactor(t, api.Redaction{Presets: []string{"secrets"}})
	for _, s := range secrets {
		if got, _ := r.text("before " + s + " after"); !strings.HasPrefix(got, "before ") || !strings.Contains(got, api.Redacted) {
			t.Errorf("%q became %q", s, got)
		}
	}
	for _, s := range []string{"the bearer of the token", "task-sk-1", "a secret", "https://example.org/a:b@c", "ada@example.org", "token: 5"} {
		if got, spans := r.text(s); spans != nil {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got, _ := redactor(t, api.Redaction{Presets: []string{"pii"}}).text("to ada.l+x@mail.example.org."); got != "to [redacted]." {
		t.Errorf("%q", got)
	}
}

func TestRedactSession(t *testing.T) {
	r := redactor(t, api.Redaction{Patterns: []string{"ada"}, Keys: []string{"pin"}})
	s := tapedeck.Session{Title: "of ada", Owner: "ada", Labels: map[string]string{"pin": "1", "who": "ada", "x": "y"}}
	got := r.Session(s)
	if got.Title != "of [redacted]" || got.Owner != api.Redacted || got.Labels["pin"] != api.Redacted || got.Labels["who"] != api.Redacted || got.Labels["x"] != "y" {
		t.Errorf("%+v", got)
	}
	if s.Labels["pin"] != "1" {
		t.Error("the labels of the session itself were changed")
	}
	e := tapedeck.Event{Type: "acme.x", Actor: "user:ada"}
	r.Learn(&e)
	if e = r.Event(e); e.Actor != "user:[redacted]" {
		t.Errorf("actor %s", e.Actor)
	}
}

func TestRedactRefuses(t *testing.T) {
	for name, in := range map[string]api.Redaction{
		"no expression":      {Patterns: []string{"("}},
		"look-around":        {Patterns: []string{"(?=a)"}},
		"matches nothing":    {Patterns: []string{"a*"}},
		"too long":           {Patterns: []string{strings.Repeat("a", maxPatternLen+1)}},
		"key without a name": {Keys: []string{"_-"}},
		"unknown preset":     {Presets: []string{"nothing"}},
		"too many":           {Keys: make([]string, maxRules+1)},
	} {
		if _, err := NewRedactor(in); err == nil || tapedeck.KindOf(err) == tapedeck.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := NewRedactor(api.Redaction{}); r != nil || err != nil {
		t.Errorf("%v %v", r, err)
	}
}

// TestRedactNothing: an event without a match stays the same, byte for byte.
func TestRedactNothing(t *testing.T) {
	for _, data := range []string{"", `{}`, `{"a":[],"b":{},"c":[1,-2.50e3,true,null,"\u00e4\/"],"d":"x"}`, strings.Repeat(`{"a":`, 3000) + `[]` + strings.Repeat(`}`, 3000)} {
		e := tapedeck.Event{Type: "acme.x", Data: json.RawMessage(data)}
		r := redactor(t, api.Redaction{Presets: []string{"secrets", "pii"}})
		w := writer{redactor: r, src: e.Data}
		if got := string(w.document()); got != data || w.changed {
			t.Errorf("%.80s became %.80s", data, got)
		}
	}
}
