package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/runnertest"
	"github.com/tapedeck/tapedeck/runner/script"
	"github.com/tapedeck/tapedeck/view"
)

func TestRunner(t *testing.T) {
	runnertest.Run(t, func(testing.TB) runnertest.Harness {
		return runnertest.Harness{
			Runner: script.New(script.Options{}),
			Talk: steps(`{"turn":true}`, `{"think":"so be it"}`, `{"say":"One  two, "}`, `{"tool":"T","args":{"a":1},"ms":5,"result":"r"}`,
				`{"step":"s","steps":[{"say":"three"}]}`),
			Text:    "One  two, three",
			Endless: tapedeck.Invocation{Config: json.RawMessage(`{"script":"long"}`)},
			Fail:    &tapedeck.Invocation{Config: json.RawMessage(`{"script":"fail"}`)},
			Abilities: runnertest.Abilities{
				Subagent: new(steps(`{"tool":"Task","agent":"scout","steps":[{"turn":true},{"think":"so"},{"step":"s","steps":[{"say":"I look"}]},`+
					`{"tool":"Task","agent":"reader","steps":[{"say":"I read"},{"plan":[{"content":"a","status":"pending"}]},{"usage":{"inputTokens":1}}],"result":"read"}],"result":"found"}`, `{"say":"Found"}`)),
			},
			Bubble: true,
		}
	})
}

// steps returns an invocation with these steps.
func steps(s ...string) tapedeck.Invocation {
	return tapedeck.Invocation{ID: "inv_1", Task: "the task", Config: json.RawMessage(`{"steps":[` + strings.Join(s, ",") + `]}`)}
}

// transcript plays an invocation and returns a line for each event: the milliseconds since
// the beginning, the type and the data. The last line is the error, if there is one.
func transcript(ctx context.Context, r *script.Runner, in tapedeck.Invocation) []string {
	var lines []string
	start := time.Now()
	for e, err := range r.Run(ctx, in) {
		if err != nil {
			lines = append(lines, "error "+err.Error())
			break
		}
		lines = append(lines, fmt.Sprintf("%d %s %s", time.Since(start).Milliseconds(), e.Type, e.Data))
	}
	return lines
}

// TestLimits: a script that goes on for ever ends at the limit of the server, also if it
// produces nothing, or few large events.
func TestLimits(t *testing.T) {
	r := script.New(script.Options{Instant: true, Limits: script.Limits{Steps: 1000, Bytes: 1 << 20}})
	large := strings.Repeat("x", 100<<10)
	for name, in := range map[string]tapedeck.Invocation{
		"steps and events": steps(`{"repeat":0,"steps":[{"say":"x"}]}`),
		"steps":            steps(`{"repeat":0,"steps":[{"turn":true}]}`),
		"bytes of events":  steps(`{"repeat":0,"steps":[{"event":"acme.x","data":"` + large + `"}]}`),
		"bytes":            steps(`{"repeat":0,"steps":[{"tool":"t","result":"` + large + `"}]}`),
	} {
		lines := transcript(t.Context(), r, in)
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "error the script has more than") || !strings.Contains(last, strings.Fields(name)[0]) || len(lines) > 1001 {
			t.Errorf("%s: %d lines, the last %.200s", name, len(lines), last)
		}
	}
	if lines := transcript(t.Context(), r, steps(`{"repeat":100,"steps":[{"say":"x"}]}`)); strings.HasPrefix(lines[len(lines)-1], "error") {
		t.Errorf("a script below the limits: %s", lines[len(lines)-1])
	}
}

func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   tapedeck.Invocation
		want []string
	}{
		{"say, word by word", steps(`{"say":"You said: {{task}}","rate":10}`), []string{
			`0 TEXT_MESSAGE_START {"messageId":"inv_1.m1","role":"assistant"}`,
			`100 TEXT_MESSAGE_CONTENT {"messageId":"inv_1.m1","delta":"You "}`,
			`200 TEXT_MESSAGE_CONTENT {"messageId":"inv_1.m1","delta":"said: "}`,
			`300 TEXT_MESSAGE_CONTENT {"messageId":"inv_1.m1","delta":"the "}`,
			`400 TEXT_MESSAGE_CONTENT {"messageId":"inv_1.m1","delta":"task"}`,
			`400 TEXT_MESSAGE_END {"messageId":"inv_1.m1"}`,
		}},
		{"think", steps(`{"think":"hm","rate":2}`), []string{
			`0 REASONING_START {"messageId":"inv_1.r1"}`,
			`0 REASONING_MESSAGE_START {"messageId":"inv_1.r1","role":"reasoning"}`,
			`500 REASONING_MESSAGE_CONTENT {"messageId":"inv_1.r1","delta":"hm"}`,
			`500 REASONING_MESSAGE_END {"messageId":"inv_1.r1"}`,
			`500 REASONING_END {"messageId":"inv_1.r1"}`,
		}},
		{"a tool that works for a while and fails", steps(`{"tool":"Bash","args":{"command":"ls -l /a/long/path"},"rate":10,"ms":70,"result":"no","failed":true}`), []string{
			`0 TOOL_CALL_START {"toolCallId":"inv_1.c1","toolCallName":"Bash"}`,
			`100 TOOL_CALL_ARGS {"toolCallId":"inv_1.c1","delta":"{\"command\":\"ls -l /a/lon"}`,
			`200 TOOL_CALL_ARGS {"toolCallId":"inv_1.c1","delta":"g/path\"}"}`,
			`200 TOOL_CALL_END {"toolCallId":"inv_1.c1"}`,
			`270 TOOL_CALL_RESULT {"messageId":"inv_1.t2","toolCallId":"inv_1.c1","role":"tool","content":"no","metadata":{"tapedeck":{"error":true,"durationMs":70}}}`,
		}},
		{"a tool with a terminal", steps(`{"tool":"Bash","rate":1000,"ms":90,"shows":"$ ls\n\u001b[1ma\u001b[0m\nb","failed":true}`), []string{
			`0 TOOL_CALL_START {"toolCallId":"inv_1.c1","toolCallName":"Bash"}`,
			`1 TOOL_CALL_ARGS {"toolCallId":"inv_1.c1","delta":"{}"}`,
			`1 TOOL_CALL_END {"toolCallId":"inv_1.c1"}`,
			`31 terminal.output {"terminal":"inv_1.c1","data":"$ ls\n"}`,
			`61 terminal.output {"terminal":"inv_1.c1","data":"\u001b[1ma\u001b[0m\n"}`,
			`91 terminal.output {"terminal":"inv_1.c1","data":"b"}`,
			`91 terminal.exit {"terminal":"inv_1.c1","code":1}`,
		}},
		{"a tool with a JSON answer, and one without an answer",
			steps(`{"set":{"rate":1000}}`, `{"tool":"A","result":{"n":1}}`, `{"tool":"B"}`), []string{
				`0 TOOL_CALL_START {"toolCallId":"inv_1.c1","toolCallName":"A"}`,
				`1 TOOL_CALL_ARGS {"toolCallId":"inv_1.c1","delta":"{}"}`,
				`1 TOOL_CALL_END {"toolCallId":"inv_1.c1"}`,
				`1 TOOL_CALL_RESULT {"messageId":"inv_1.t2","toolCallId":"inv_1.c1","role":"tool","content":"{\"n\":1}"}`,
				`1 TOOL_CALL_START {"toolCallId":"inv_1.c3","toolCallName":"B"}`,
				`2 TOOL_CALL_ARGS {"toolCallId":"inv_1.c3","delta":"{}"}`,
				`2 TOOL_CALL_END {"toolCallId":"inv_1.c3"}`,
			}},
		{"plan, state, usage and any event", steps(`{"plan":[{"content":"a","status":"pending"}]}`, `{"state":[1]}`, `{"patch":[]}`,
			`{"usage":{"inputTokens":1}}`, `{"event":"x.y","data":{"z":null}}`), []string{
			`0 plan.updated {"entries":[{"content":"a","status":"pending"}]}`,
			`0 STATE_SNAPSHOT {"snapshot":[1]}`,
			`0 STATE_DELTA {"delta":[]}`,
			`0 usage.reported {"inputTokens":1}`,
			`0 x.y {"z":null}`,
		}},
		{"sleep and repeat", steps(`{"repeat":2,"steps":[{"sleep":30},{"repeat":1,"steps":[]},{"event":"e"}]}`), []string{
			`error step 1, step 2: "repeat", "step" and "agent" need "steps", and no other step can have them`,
		}},
		{"rounds are counted", steps(`{"repeat":2,"steps":[{"sleep":30},{"step":"{{n}}","steps":[{"event":"e"}]}]}`), []string{
			`30 STEP_STARTED {"stepName":"{{n}}"}`, `30 e `, `30 STEP_FINISHED {"stepName":"{{n}}"}`,
			`60 STEP_STARTED {"stepName":"{{n}}"}`, `60 e `, `60 STEP_FINISHED {"stepName":"{{n}}"}`,
		}},
		{"an error ends the script", steps(`{"error":"it broke"}`, `{"event":"e"}`), []string{`error it broke`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := transcript(t.Context(), script.New(script.Options{}), tt.in)
				if g, w := strings.Join(got, "\n"), strings.Join(tt.want, "\n"); g != w {
					t.Errorf("got\n%s\nwant\n%s", g, w)
				}
			})
		})
	}
}

func TestTiming(t *testing.T) {
	last := func(t *testing.T, o script.Options, config string) string {
		lines := transcript(t.Context(), script.New(o), tapedeck.Invocation{Config: json.RawMessage(config)})
		ms, _, _ := strings.Cut(lines[len(lines)-1], " ")
		return ms
	}
	const ten = `"steps":[{"say":"a b c d e f g h i j","rate":1}]`
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			options script.Options
			config  string
			want    string
		}{
			{script.Options{}, `{` + ten + `}`, "10000"},
			{script.Options{Speed: 4}, `{` + ten + `}`, "2500"},
			{script.Options{Speed: 4}, `{"speed":5,` + ten + `}`, "500"},
			{script.Options{Instant: true}, `{` + ten + `}`, "0"},
			{script.Options{}, `{"instant":true,` + ten + `}`, "0"},
		} {
			if got := last(t, tt.options, tt.config); got != tt.want {
				t.Errorf("%+v %s: took %s ms, want %s", tt.options, tt.config, got, tt.want)
			}
		}
		jitter := func(seed int) string {
			return last(t, script.Options{}, fmt.Sprintf(`{"seed":%d,"steps":[{"set":{"jitter":0.9}},{"say":"a b c d e f g h i j","rate":1}]}`, seed))
		}
		if a, b, c := jitter(1), jitter(1), jitter(2); a != b || a == c {
			t.Errorf("jitter: seed 1 took %s and %s ms, seed 2 %s ms; want the same, then another", a, b, c)
		}
	})
}

func TestBuiltin(t *testing.T) {
	took := map[string]time.Duration{"coder": 20 * time.Second, "slow": time.Minute}
	for _, name := range script.Names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start, n := time.Now(), 0
				for _, err := range script.New(script.Options{Script: name}).Run(ctx, tapedeck.Invocation{ID: "inv_1"}) {
					if tapedeck.KindOf(err) == tapedeck.Invalid {
						t.Fatal(err)
					}
					n++
				}
				if d, want := time.Since(start), took[name]; want != 0 && (d < want*3/4 || d > want*5/4) {
					t.Errorf("it took %v, want about %v", d, want)
				}
				if n < 5 {
					t.Errorf("it has %d events", n)
				}
			})
		})
	}
}

// TestSummaryOfCoder checks that the edits of the demo's coder are in the summary of its session. It
// also checks that a tool has the same duration in every view, also at a higher speed.
func TestSummaryOfCoder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sum view.SummaryFold
		var talk view.Conversation
		n, runner := int64(0), script.New(script.Options{Script: "coder", Speed: 6})
		for e, err := range runner.Run(t.Context(), tapedeck.Invocation{ID: "inv_1"}) {
			if err != nil {
				t.Fatal(err)
			}
			e.Offset, e.Channel, e.Invocation, e.Time = n, tapedeck.ChannelOf(e.Type), "inv_1", time.Now()
			n++
			sum.Apply(&e)
			talk.Apply(&e)
		}
		s := sum.Summary()
		if len(s.FilesModified) == 0 || s.LinesAdded == 0 || s.LinesRemoved == 0 {
			t.Errorf("files %q, +%d -%d", s.FilesModified, s.LinesAdded, s.LinesRemoved)
		}
		took := map[string]int64{}
		for _, k := range talk.Snapshot().Calls {
			if k.DurationMS != nil {
				took[k.Name] += *k.DurationMS
			}
		}
		for _, u := range s.Tools {
			if u.DurationMS != took[u.Name] {
				t.Errorf("%s took %d ms in the summary, %d in the snapshot", u.Name, u.DurationMS, took[u.Name])
			}
		}
	})
}

func TestScripts(t *testing.T) {
	files := fstest.MapFS{
		"mine.jsonl":  {Data: []byte("# a comment\r\n\r\n{\"say\":\"mine\"}\r\n")},
		"hello.jsonl": {Data: []byte(`{"say":"hidden"}`)},
		"bad.jsonl":   {Data: []byte("{\"say\":\"a\"}\n\n{\"say\":\n")},
	}
	r := script.New(script.Options{Scripts: files, Instant: true})
	for name, want := range map[string]string{
		"mine": "mine", "hello": "hidden", "": "hidden",
		"bad":         "script bad, line 3: the JSON is not complete",
		"none":        `there is no script "none"`,
		"../bad":      `the script's name "../bad" must begin with a letter, a digit or an underscore`,
		"a/../../b":   `the script's name "a/../../b" has a character that is not allowed`,
		"builtin\x00": `the script's name "builtin\x00" has a character that is not allowed`,
	} {
		config, err := json.Marshal(map[string]string{"script": name})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(transcript(t.Context(), r, tapedeck.Invocation{Config: config}), "\n")
		if !strings.Contains(got, want) {
			t.Errorf("script %q: got %s, want %s", name, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat(`{"repeat":1,"steps":[`, 20) + `{"sleep":1}` + strings.Repeat(`]}`, 20)
	long := `{"say":"` + strings.Repeat("{{task}}", 1<<16) + `"}`
	for _, tt := range []struct{ config, want string }{
		{`{"script":1}`, `the script's config is not valid: "script" must not be a JSON number`},
		{`{"model":"x"}`, `the config has the member "model", which the agent does not know`},
		{`[]`, `the config is not a JSON object`},
		{`{"script":"hello","steps":[]}`, `the script's config has both a script and steps`},
		{`{"speed":-1}`, `the script's speed is -1, but it must be above 0`},
		{`{"steps":{}}`, `"steps" is not an array of steps`},
		{`{"steps":[{}]}`, `step 1: the step has no action`},
		{`{"steps":[null]}`, `step 1: the step has no action`},
		{`{"steps":[{"say":"a"},{"say":"a","think":"b"}]}`, `step 2: the step has 2 actions, but a step has exactly one`},
		{`{"steps":[{"say":["a"]}]}`, `step 1: "say" must not be a JSON array`},
		{`{"steps":[{"shout":"a"}]}`, `step 1: unknown field "shout"`},
		{`{"steps":[{"wait":"lunch"}]}`, `step 1: a step can wait only for "cancel", not for "lunch"`},
		{`{"steps":[{"sleep":-1}]}`, `step 1: a number is negative`},
		{`{"steps":[{"tool":""}]}`, `step 1: the tool has no name`},
		{`{"steps":[{"set":{"rate":0}}]}`, `step 1: the rate must be above 0`},
		{`{"steps":[{"set":{"jitter":2}}]}`, `step 1: the jitter must be from 0 to 1`},
		{`{"steps":[{"turn":false}]}`, `step 1: "turn" can only be true`},
		{`{"steps":[{"step":"a","steps":[{"sleep":1},{"sleep":"x"}]}]}`, `step 1, step 2: "sleep" must not be a JSON string`},
		{`{"steps":[` + deep + `]}`, `steps nest deeper than 16`},
		{`{"steps":[` + long + `]}`, `a text of the script has more than 1048576 bytes`},
		{"{\"steps\":[{\"say\":\"\xff\"}]}", `the script's config is not valid: it is not valid UTF-8`},
	} {
		in := tapedeck.Invocation{Task: strings.Repeat("x", 100), Config: json.RawMessage(tt.config)}
		var failed error
		for e, err := range script.New(script.Options{Instant: true}).Run(t.Context(), in) {
			if failed = err; err == nil {
				t.Errorf("%.80s: yielded %s", tt.config, e.Type)
			}
		}
		if failed == nil || !strings.Contains(failed.Error(), tt.want) || tapedeck.KindOf(failed) != tapedeck.Invalid {
			t.Errorf("%.80s: got %v, want %s", tt.config, failed, tt.want)
		}
	}
}

// TestCancelEmptyLoop checks that a cancel ends a loop that neither waits nor yields events.
func TestCancelEmptyLoop(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, loop := range []string{`{"repeat":0,"steps":[{"sleep":0}]}`, `{"repeat":0,"steps":[{"turn":true}]}`, `{"wait":"cancel"}`} {
		if got := transcript(ctx, script.New(script.Options{}), steps(loop)); len(got) > 0 {
			t.Errorf("%s: got %v", loop, got)
		}
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("it ended before it was cancelled")
	}
}
