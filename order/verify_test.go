package order_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// A line of a script is an event: its type and, optionally, its data. It may
// begin with thread and invocation, as in "b/s:"; the default is invocation r
// in thread main. The line "run" starts that run, and "end" finishes it.
var line = regexp.MustCompile(`^(([^\s/:]*)/([^\s:]*):\s*)?(\S+)\s*(.*)$`)

func script(t testing.TB, text string) []tapedeck.Event {
	t.Helper()
	var events []tapedeck.Event
	for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		m := line.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			t.Fatalf("bad line %q", l)
		}
		e := tapedeck.Event{Type: m[4], Thread: m[2], Invocation: m[3], Offset: int64(len(events) + 1)}
		if m[1] == "" {
			e.Invocation = "r"
		}
		ids := fmt.Sprintf(`{"threadId":%q,"runId":%q}`, e.ThreadName(), e.Invocation)
		switch m[4] {
		case "run":
			e.Type, e.Data = tapedeck.RunStarted, []byte(ids)
		case "end":
			e.Type, e.Data = tapedeck.RunFinished, []byte(ids)
		default:
			e.Data = []byte(m[5])
		}
		events = append(events, e)
	}
	return events
}

// add adds events up to the first that is refused, and returns how many it has
// added.
func add(v *order.Verifier, events []tapedeck.Event) (int, error) {
	for i := range events {
		if err := v.Add(&events[i]); err != nil {
			return i, err
		}
	}
	return len(events), nil
}

func TestVerifierAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"a conversation": `run
			REASONING_START {"messageId":"s"}
			REASONING_MESSAGE_START {"messageId":"s","role":"reasoning"}
			REASONING_MESSAGE_CONTENT {"messageId":"s","delta":"hm"}
			REASONING_MESSAGE_END {"messageId":"s"}
			REASONING_ENCRYPTED_VALUE {"subtype":"message","entityId":"s","encryptedValue":"x"}
			REASONING_END {"messageId":"s"}
			TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}
			TEXT_MESSAGE_CONTENT {"messageId":"m","delta":""}
			TOOL_CALL_START {"toolCallId":"c","toolCallName":"Read","parentMessageId":"m"}
			TOOL_CALL_ARGS {"toolCallId":"c","delta":"{}"}
			TEXT_MESSAGE_END {"messageId":"m"}
			TOOL_CALL_END {"toolCallId":"c"}
			TOOL_CALL_RESULT {"messageId":"m2","toolCallId":"c","content":"ok","role":"tool"}
			STATE_SNAPSHOT {"snapshot":null}
			STATE_DELTA {"delta":[{"op":"add","path":"/a","value":null}]}
			MESSAGES_SNAPSHOT {"messages":[{"id":"u","role":"user","content":[{"type":"text","text":"hi"}]}]}
			CUSTOM {"name":"x.y","value":null}
			RAW {"event":1,"source":"z"}
			end`,
		"steps that overlap": `run
			STEP_STARTED {"stepName":"a"}
			STEP_STARTED {"stepName":"b"}
			STEP_FINISHED {"stepName":"a"}
			STEP_FINISHED {"stepName":"b"}
			end`,
		"one step for each owner": `run
			STEP_STARTED {"stepName":"a"}
			STEP_STARTED {"stepName":"a","subagentRunId":"s"}
			STEP_FINISHED {"stepName":"a"}
			STEP_FINISHED {"stepName":"a","subagentRunId":"s"}
			end`,
		"sub-agents in parallel": `run
			SUBAGENT_STARTED {"subagentRunId":"s","name":"one"}
			SUBAGENT_STARTED {"subagentRunId":"t","name":"two","parentSubagentRunId":"s"}
			TEXT_MESSAGE_START {"messageId":"m","subagentRunId":"s"}
			TEXT_MESSAGE_START {"messageId":"n","subagentRunId":"t"}
			TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"a"}
			TEXT_MESSAGE_CONTENT {"messageId":"n","delta":"b","subagentRunId":"t"}
			TEXT_MESSAGE_END {"messageId":"m"}
			TEXT_MESSAGE_END {"messageId":"n"}
			SUBAGENT_ERROR {"subagentRunId":"s","message":"failed"}
			SUBAGENT_FINISHED {"subagentRunId":"t","outcome":{"type":"suspended"}}
			end`,
		"tags without a start": `run
			CUSTOM {"name":"x","value":1,"subagentRunId":"ghost"}
			end`,
		"a parent that has finished": `run
			SUBAGENT_STARTED {"subagentRunId":"s","name":"one"}
			SUBAGENT_FINISHED {"subagentRunId":"s"}
			SUBAGENT_STARTED {"subagentRunId":"t","name":"two","parentSubagentRunId":"s"}
			SUBAGENT_FINISHED {"subagentRunId":"t"}
			end`,
		"an activity that changes hands": `run
			ACTIVITY_SNAPSHOT {"messageId":"a","activityType":"T","content":{},"subagentRunId":"s"}
			ACTIVITY_SNAPSHOT {"messageId":"a","activityType":"T","content":{},"subagentRunId":"t"}
			ACTIVITY_DELTA {"messageId":"a","activityType":"T","patch":[],"subagentRunId":"t"}
			end`,
		"a message opened again": `run
			TEXT_MESSAGE_START {"messageId":"m"}
			TEXT_MESSAGE_END {"messageId":"m"}
			TEXT_MESSAGE_START {"messageId":"m"}
			TEXT_MESSAGE_END {"messageId":"m"}
			end`,
		"a message and a call of one id": `run
			TEXT_MESSAGE_START {"messageId":"x"}
			TOOL_CALL_START {"toolCallId":"x","toolCallName":"f"}
			TEXT_MESSAGE_END {"messageId":"x"}
			TOOL_CALL_END {"toolCallId":"x"}
			end`,
		"a result without a call":       "run\nTOOL_CALL_RESULT {\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":[]}\nend",
		"an error with something open":  "run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nRUN_ERROR {\"message\":\"failed\"}",
		"runs one after the other":      "run\nend\n/s: run\n/s: RUN_ERROR {\"message\":\"x\"}\n/t: run\n/t: end",
		"runs on two threads":           "a/r: run\nb/s: run\na/r: TEXT_MESSAGE_START {\"messageId\":\"m\"}\nb/s: TEXT_MESSAGE_START {\"messageId\":\"m\"}\na/r: TEXT_MESSAGE_END {\"messageId\":\"m\"}\na/r: end\nb/s: TEXT_MESSAGE_END {\"messageId\":\"m\"}\nb/s: end",
		"the main thread by its name":   "main/r: run\n/r: CUSTOM {\"name\":\"a\",\"value\":1}\nmain/r: end",
		"types of ours, anywhere":       "/: session.created {\"title\":\"x\"}\n/old: message.added {}\nrun\nsession.cleared\nsession.rewound {}\nplan.updated {}\nend\nr: usage.reported",
		"unknown types":                 "/: FUTURE_EVENT {\"a\":1}\n/: x.y\nrun\nTEXT_MESSAGE_SHOUTED {}\nend",
		"unknown members":               "run\nTEXT_MESSAGE_START {\"messageId\":\"m\",\"shiny\":null}\nTEXT_MESSAGE_END {\"messageId\":\"m\",\"x\":{}}\nend",
		"an escaped id":                 "run\nTEXT_MESSAGE_START {\"messageId\":\"m\\u0031\"}\nTEXT_MESSAGE_END {\"messageId\":\"m1\"}\nend",
		"outcomes":                      "run\nRUN_FINISHED {\"threadId\":\"main\",\"runId\":\"r\",\"outcome\":{\"type\":\"interrupt\",\"interrupts\":[{\"id\":\"i\",\"reason\":\"x\"}]}}",
		"an outcome of a later version": "run\nRUN_FINISHED {\"threadId\":\"main\",\"runId\":\"r\",\"outcome\":{\"type\":\"paused\",\"until\":1}}",
	} {
		t.Run(name, func(t *testing.T) {
			events := script(t, text)
			if n, err := add(order.NewVerifier(), events); err != nil {
				t.Errorf("%s %s: %v", events[n].Type, events[n].Data, err)
			}
		})
	}
}

func TestVerifierRefuses(t *testing.T) {
	const conflict, invalid = tapedeck.Conflict, tapedeck.Invalid
	for name, test := range map[string]struct {
		text string // the last line must be refused
		kind tapedeck.Kind
		says string
	}{
		"content outside a run":          {`/: TEXT_MESSAGE_START {"messageId":"m"}`, conflict, "must be part of a run, and thread main has no open run"},
		"content of no known run":        {`TEXT_MESSAGE_START {"messageId":"m"}`, conflict, "run r is not open on thread main"},
		"custom before a run":            {`CUSTOM {"name":"a","value":1}`, conflict, "run r is not open"},
		"an error without a run":         {`RUN_ERROR {"message":"x"}`, conflict, "run r is not open"},
		"content of no invocation":       {"run\n/: CUSTOM {\"name\":\"a\",\"value\":1}", invalid, "has no invocation"},
		"content of another run":         {"run\n/s: CUSTOM {\"name\":\"a\",\"value\":1}", conflict, "run s is not open on thread main"},
		"content on another thread":      {"run\nb/r: CUSTOM {\"name\":\"a\",\"value\":1}", conflict, "run r is on thread main, not on b"},
		"content after the end":          {"run\nend\nCUSTOM {\"name\":\"a\",\"value\":1}", conflict, "run r has ended at offset 2"},
		"content after an error":         {"run\nRUN_ERROR {\"message\":\"x\"}\nCUSTOM {\"name\":\"a\",\"value\":1}", conflict, "run r has ended at offset 2"},
		"a second end":                   {"run\nend\nRUN_ERROR {\"message\":\"x\"}", conflict, "run r has ended at offset 2"},
		"a second run on a thread":       {"run\n/s: run", conflict, "thread main is busy with run r, which started at offset 1"},
		"a run twice":                    {"run\nrun", conflict, "run r has started at offset 1 and is still open"},
		"a run on two threads":           {"run\nb/r: run", conflict, "is still open"},
		"a run again after its end":      {"run\nend\nrun", conflict, "run r has ended at offset 2"},
		"a run under another id":         {`RUN_STARTED {"threadId":"main","runId":"other"}`, invalid, `runId "other", but belongs to invocation r`},
		"a run without an id":            {`/: RUN_STARTED {"threadId":"main","runId":""}`, invalid, "the run's id is empty"},
		"a run without a runId":          {`RUN_STARTED {"threadId":"main"}`, invalid, "has no runId"},
		"the end of another run":         {"run\nRUN_FINISHED {\"threadId\":\"main\",\"runId\":\"other\"}", invalid, "belongs to invocation r"},
		"an end without ids":             {"run\nRUN_FINISHED {}", invalid, "has no threadId"},
		"text that is not open":          {"run\nTEXT_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\"x\"}", conflict, `text message "m" is not open in run r`},
		"text that has ended":            {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nTEXT_MESSAGE_END {\"messageId\":\"m\"}\nTEXT_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\"x\"}", conflict, "is not open"},
		"text of another thread":         {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nb/s: run\nb/s: TEXT_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\"x\"}", conflict, "is not open in run s"},
		"text opened twice":              {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nTEXT_MESSAGE_START {\"messageId\":\"m\"}", conflict, `text message "m" is already open`},
		"the end of no text":             {"run\nTEXT_MESSAGE_END {\"messageId\":\"m\"}", conflict, "is not open"},
		"arguments of no call":           {"run\nTOOL_CALL_ARGS {\"toolCallId\":\"c\",\"delta\":\"\"}", conflict, `tool call "c" is not open`},
		"a call opened twice":            {"run\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\"}\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\"}", conflict, "is already open"},
		"the end of no call":             {"run\nTOOL_CALL_END {\"toolCallId\":\"c\"}", conflict, "is not open"},
		"thinking that is not open":      {"run\nREASONING_START {\"messageId\":\"m\"}\nREASONING_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\"x\"}", conflict, `reasoning message "m" is not open`},
		"a span twice":                   {"run\nREASONING_START {\"messageId\":\"m\"}\nREASONING_START {\"messageId\":\"m\"}", conflict, `reasoning span "m" is already open`},
		"the end of no span":             {"run\nREASONING_END {\"messageId\":\"m\"}", conflict, "is not open"},
		"a step twice":                   {"run\nSTEP_STARTED {\"stepName\":\"a\"}\nSTEP_STARTED {\"stepName\":\"a\"}", conflict, `step "a" is already open`},
		"the end of no step":             {"run\nSTEP_FINISHED {\"stepName\":\"a\"}", conflict, `step "a" is not open`},
		"the end of another's step":      {"run\nSTEP_STARTED {\"stepName\":\"a\"}\nSTEP_FINISHED {\"stepName\":\"a\",\"subagentRunId\":\"s\"}", conflict, `step "a" belongs to the agent itself, not to sub-agent "s"`},
		"an end with text open":          {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nend", conflict, `run r cannot finish while text message "m" is open`},
		"an end with a call open":        {"run\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\"}\nend", conflict, "cannot finish"},
		"an end with thinking open":      {"run\nREASONING_MESSAGE_START {\"messageId\":\"m\",\"role\":\"reasoning\"}\nend", conflict, "cannot finish"},
		"an end with a span open":        {"run\nREASONING_START {\"messageId\":\"m\"}\nend", conflict, "cannot finish"},
		"an end with a step open":        {"run\nSTEP_STARTED {\"stepName\":\"a\"}\nend", conflict, "cannot finish"},
		"an end with a sub-agent active": {"run\nSTEP_STARTED {\"stepName\":\"a\"}\nSUBAGENT_STARTED {\"subagentRunId\":\"s\",\"name\":\"n\"}\nend", conflict, `sub-agent "s" is open, and 1 more`},
		"a foreign tag on content":       {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\",\"subagentRunId\":\"s\"}\nTEXT_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\"\",\"subagentRunId\":\"t\"}", conflict, `text message "m" belongs to sub-agent "s", not to sub-agent "t"`},
		"a tag on the agent's content":   {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nTEXT_MESSAGE_END {\"messageId\":\"m\",\"subagentRunId\":\"t\"}", conflict, "belongs to the agent itself"},
		"another reopens a message":      {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nTEXT_MESSAGE_END {\"messageId\":\"m\"}\nTEXT_MESSAGE_START {\"messageId\":\"m\",\"subagentRunId\":\"t\"}", conflict, "belongs to the agent itself"},
		"another reopens a result":       {"run\nTOOL_CALL_RESULT {\"messageId\":\"m\",\"toolCallId\":\"c\",\"content\":\"\",\"subagentRunId\":\"s\"}\nTEXT_MESSAGE_START {\"messageId\":\"m\",\"subagentRunId\":\"t\"}", conflict, `belongs to sub-agent "s"`},
		"another's span around thinking": {"run\nREASONING_START {\"messageId\":\"m\",\"subagentRunId\":\"s\"}\nREASONING_MESSAGE_START {\"messageId\":\"m\",\"role\":\"reasoning\",\"subagentRunId\":\"t\"}", conflict, `belongs to sub-agent "s"`},
		"a call in another's message":    {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"parentMessageId\":\"m\",\"subagentRunId\":\"t\"}", conflict, `its message "m" belongs to the agent itself`},
		"a call that inherits":           {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\",\"subagentRunId\":\"s\"}\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"parentMessageId\":\"m\"}\nTOOL_CALL_ARGS {\"toolCallId\":\"c\",\"delta\":\"\",\"subagentRunId\":\"t\"}", conflict, `belongs to sub-agent "s"`},
		"a call reopened elsewhere":      {"run\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"subagentRunId\":\"s\"}\nTOOL_CALL_END {\"toolCallId\":\"c\"}\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"parentMessageId\":\"m\"}", conflict, `belongs to sub-agent "s", not to the agent itself`},
		"another's secret":               {"run\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"subagentRunId\":\"s\"}\nTOOL_CALL_END {\"toolCallId\":\"c\"}\nREASONING_ENCRYPTED_VALUE {\"subtype\":\"tool-call\",\"entityId\":\"c\",\"encryptedValue\":\"x\",\"subagentRunId\":\"t\"}", conflict, `belongs to sub-agent "s"`},
		"another's secret thought":       {"run\nREASONING_MESSAGE_START {\"messageId\":\"m\",\"role\":\"reasoning\",\"subagentRunId\":\"s\"}\nREASONING_ENCRYPTED_VALUE {\"subtype\":\"message\",\"entityId\":\"m\",\"encryptedValue\":\"x\",\"subagentRunId\":\"t\"}", conflict, `belongs to sub-agent "s"`},
		"another's activity":             {"run\nACTIVITY_SNAPSHOT {\"messageId\":\"a\",\"activityType\":\"T\",\"content\":{},\"subagentRunId\":\"s\"}\nACTIVITY_SNAPSHOT {\"messageId\":\"a\",\"activityType\":\"T\",\"content\":{},\"replace\":false}\nACTIVITY_DELTA {\"messageId\":\"a\",\"activityType\":\"T\",\"patch\":[],\"subagentRunId\":\"t\"}", conflict, `activity "a" belongs to sub-agent "s"`},
		"another than the snapshot says": {"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nMESSAGES_SNAPSHOT {\"messages\":[{\"id\":\"m\",\"role\":\"assistant\",\"subagentRunId\":\"s\"}]}\nTEXT_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\"\",\"subagentRunId\":\"t\"}", conflict, `belongs to sub-agent "s"`},
		"another than the input says":    {"RUN_STARTED {\"threadId\":\"main\",\"runId\":\"r\",\"input\":{\"threadId\":\"main\",\"runId\":\"r\",\"messages\":[{\"id\":\"m\",\"role\":\"assistant\",\"toolCalls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}]}}\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\",\"subagentRunId\":\"t\"}", conflict, "belongs to the agent itself"},
		"a sub-agent twice":              {"run\nSUBAGENT_STARTED {\"subagentRunId\":\"s\",\"name\":\"n\"}\nSUBAGENT_STARTED {\"subagentRunId\":\"s\",\"name\":\"n\"}", conflict, `sub-agent "s" was started before`},
		"a sub-agent again":              {"run\nSUBAGENT_STARTED {\"subagentRunId\":\"s\",\"name\":\"n\"}\nSUBAGENT_FINISHED {\"subagentRunId\":\"s\"}\nSUBAGENT_STARTED {\"subagentRunId\":\"s\",\"name\":\"n\"}", conflict, "was started before"},
		"the end of no subagent":         {"run\nSUBAGENT_FINISHED {\"subagentRunId\":\"s\"}", conflict, `sub-agent "s" is not active`},
		"an orphan":                      {"run\nSUBAGENT_STARTED {\"subagentRunId\":\"s\",\"name\":\"n\",\"parentSubagentRunId\":\"p\"}", conflict, `the parent "p", which was not started`},
		"shorthand":                      {"run\nTEXT_MESSAGE_CHUNK {\"messageId\":\"m\",\"delta\":\"x\"}", invalid, "is shorthand"},
		"a hostile invocation":           {"/\x1b[31m: CUSTOM {\"name\":\"a\",\"value\":1}", invalid, "the event's invocation \"\\x1b[31m\" must begin with"},
		"a hostile thread":               {"../r: RUN_STARTED {\"threadId\":\"main\",\"runId\":\"r\"}", invalid, "the event's thread"},
		"bad data":                       {"run\nTEXT_MESSAGE_START {\"messageId\":5}", invalid, "messageId in the data of TEXT_MESSAGE_START must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			events := script(t, test.text)
			v := order.NewVerifier()
			before := order.NewVerifier()
			n, err := add(v, events)
			if n != len(events)-1 || tapedeck.KindOf(err) != test.kind || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Fatalf("line %d of %d: %s: %v", n+1, len(events), tapedeck.KindOf(err), err)
			}
			if _, err := add(before, events[:n]); err != nil || !cmp.Equal(v.Runs(), before.Runs()) || !cmp.Equal(v.Open("main"), before.Open("main")) {
				t.Error("the refusal left a trace")
			}
			again := v.Add(&events[n])
			if fmt.Sprint(again) != err.Error() {
				t.Errorf("refused again with %v", again)
			}
		})
	}
}

func TestVerifierHints(t *testing.T) {
	for text, want := range map[string]string{
		`/: CUSTOM {"name":"a","value":1}`: "send RUN_STARTED first",
		"run\n/s: run":                     "wait for its end, cancel it, or use another thread",
		"run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nTOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\"}\nend": `send TOOL_CALL_END of "c", TEXT_MESSAGE_END of "m" first`,
		"run\nTEXT_MESSAGE_END {\"messageId\":\"m\"}":                 "send TEXT_MESSAGE_START before TEXT_MESSAGE_END",
		"run\nTEXT_MESSAGE_START {\"messageId\":\"m\",\"name\":null}": "leave it out",
	} {
		_, err := add(order.NewVerifier(), script(t, text))
		var e *tapedeck.Error
		if !errors.As(err, &e) || e.Hint != want {
			t.Errorf("%s: %+v", text, err)
		}
	}
}

func TestVerifierShowsLongIDsShort(t *testing.T) {
	id := strings.Repeat("é", 500)
	_, err := add(order.NewVerifier(), script(t, "run\nTEXT_MESSAGE_END {\"messageId\":\""+id+"\"}"))
	if tapedeck.KindOf(err) != tapedeck.Conflict || len(err.Error()) > 150 || !strings.Contains(err.Error(), `é…"`) {
		t.Errorf("got %v", err)
	}
	_, err = add(order.NewVerifier(), script(t, "run\nTEXT_MESSAGE_START {\"messageId\":\""+id+id+"\"}"))
	if tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("an id of 2,000 bytes: %v", err)
	}
}

func TestVerifierRuns(t *testing.T) {
	v := order.NewVerifier()
	if _, err := add(v, script(t, "a/r: run\nb/s: run\na/r: TEXT_MESSAGE_START {\"messageId\":\"m\",\"subagentRunId\":\"x\"}\na/r: STEP_STARTED {\"stepName\":\"z\"}")); err != nil {
		t.Fatal(err)
	}
	want := []tapedeck.OpenRun{{Invocation: "r", Thread: "a", Offset: 1}, {Invocation: "s", Thread: "b", Offset: 2}}
	if got := v.Runs(); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	things := []order.OpenThing{{Type: "TEXT_MESSAGE_START", ID: "m", Subagent: "x"}, {Type: "STEP_STARTED", ID: "z"}}
	if got := v.Open("a"); !cmp.Equal(got, things) {
		t.Error(cmp.Diff(things, got))
	}
	if inv, start, ok := v.ActiveRun("b"); inv != "s" || start != 2 || !ok {
		t.Errorf("thread b has %s from %d, %v", inv, start, ok)
	}
	if inv, _, ok := v.ActiveRun("main"); ok || v.Open("main") != nil || v.Closing("nobody") != nil {
		t.Errorf("the main thread has %s", inv)
	}
}

func TestVerifierCloneIsIndependent(t *testing.T) {
	v := order.NewVerifier()
	if _, err := add(v, script(t, "run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}")); err != nil {
		t.Fatal(err)
	}
	one, two := v.Clone(), v.Clone()
	if _, err := add(one, script(t, "TEXT_MESSAGE_END {\"messageId\":\"m\"}\nend\n/s: run")); err != nil {
		t.Fatal(err)
	}
	if _, err := add(two, script(t, "TOOL_CALL_START {\"toolCallId\":\"c\",\"toolCallName\":\"f\"}\nb/s: run")); err != nil {
		t.Fatal(err)
	}
	if _, err := add(v, script(t, "TOOL_CALL_START {\"toolCallId\":\"d\",\"toolCallName\":\"f\"}")); err != nil {
		t.Fatal(err)
	}
	ids := func(v *order.Verifier) (s []string) {
		for _, r := range v.Runs() {
			s = append(s, r.Invocation)
		}
		for _, o := range v.Open("main") {
			s = append(s, o.ID)
		}
		return s
	}
	for _, test := range []struct {
		v    *order.Verifier
		want string
	}{{v, "[r m d]"}, {one, "[s]"}, {two, "[r s m c]"}} {
		if got := fmt.Sprint(ids(test.v)); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestVerifierIsReadByMany(t *testing.T) {
	v := order.NewVerifier()
	if _, err := v.Accept(script(t, "run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}")); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			next := v.Clone()
			if _, err := next.Accept(append(v.Closing("r"), script(t, "end\n/s: run")...)); err != nil {
				t.Error(err)
			}
			if len(v.Open("main")) != 1 || len(next.Runs()) != 1 {
				t.Errorf("open are %v", v.Open("main"))
			}
		})
	}
	group.Wait()
}

func TestVerifierClosing(t *testing.T) {
	v := order.NewVerifier()
	events := script(t, `b/r: run
		b/r: STEP_STARTED {"stepName":"plan"}
		b/r: SUBAGENT_STARTED {"subagentRunId":"s","name":"n"}
		b/r: STEP_STARTED {"stepName":"plan","subagentRunId":"s"}
		b/r: REASONING_START {"messageId":"t","subagentRunId":"s"}
		b/r: REASONING_MESSAGE_START {"messageId":"t","role":"reasoning","subagentRunId":"s"}
		b/r: TEXT_MESSAGE_START {"messageId":"m"}
		b/r: TOOL_CALL_START {"toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`)
	for i := range events {
		events[i].Instance, events[i].Turn = "ins", i
	}
	if _, err := add(v, events); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range v.Closing("r") {
		if e.Thread != "b" || e.Invocation != "r" || e.Instance != "ins" || e.Turn == 0 {
			t.Errorf("the envelope is %+v", e)
		}
		got = append(got, e.Type+" "+string(e.Data))
	}
	want := []string{
		`TOOL_CALL_END {"toolCallId":"c"}`,
		`TEXT_MESSAGE_END {"messageId":"m"}`,
		`REASONING_MESSAGE_END {"messageId":"t","subagentRunId":"s"}`,
		`REASONING_END {"messageId":"t","subagentRunId":"s"}`,
		`STEP_FINISHED {"stepName":"plan","subagentRunId":"s"}`,
		`SUBAGENT_ERROR {"subagentRunId":"s","message":"the run ended before the sub-agent did","code":"run_ended"}`,
		`STEP_FINISHED {"stepName":"plan"}`,
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if _, err := add(v, append(v.Closing("r"), script(t, "b/r: end")...)); err != nil {
		t.Error(err)
	}
}

func TestVerifierSettle(t *testing.T) {
	v := order.NewVerifier()
	events := script(t, "run\nend\n/s: run")
	for i := range events {
		events[i].Offset = 0 // unknown at the time of adding
	}
	if _, err := add(v, events); err != nil {
		t.Fatal(err)
	}
	if err := v.Add(&script(t, "run")[0]); err == nil || err.Error() != "run r has ended" {
		t.Errorf("before: %v", err)
	}
	kept := v.Clone()
	for i := range events {
		events[i].Offset = int64(i + 40)
	}
	v.SetOffsets(events)
	if err := v.Add(&script(t, "run")[0]); err == nil || err.Error() != "run r has ended at offset 41" {
		t.Errorf("after: %v", err)
	}
	if _, start, _ := v.ActiveRun("main"); start != 42 {
		t.Errorf("the run starts at %d", start)
	}
	if _, start, _ := kept.ActiveRun("main"); start != 0 {
		t.Errorf("the clone's run starts at %d", start)
	}
}

func TestVerifierLimits(t *testing.T) {
	v := order.NewVerifier()
	var err error
	started := 0
	for ; err == nil; started++ {
		_, err = add(v, script(t, fmt.Sprintf("t%d/r%d: run", started, started)))
	}
	if tapedeck.KindOf(err) != tapedeck.TooLarge || started != 1001 {
		t.Errorf("run %d: %v", started, err)
	}
	opened := 0
	for err = nil; err == nil; opened++ {
		_, err = add(v, script(t, fmt.Sprintf("t0/r0: TEXT_MESSAGE_START {\"messageId\":\"m%d\"}", opened)))
	}
	if tapedeck.KindOf(err) != tapedeck.TooLarge || opened != 1001 {
		t.Errorf("message %d: %v", opened, err)
	}
	if n := len(v.Closing("r0")); n != 1000 {
		t.Errorf("%d events close it", n)
	}
}

// TestVerifierForgets checks that an endless run does not make its verifier
// grow. It forgets only the owners of things that were closed long ago.
func TestVerifierForgets(t *testing.T) {
	v := order.NewVerifier()
	if _, err := add(v, script(t, "run")); err != nil {
		t.Fatal(err)
	}
	reopens := func(n int) error {
		_, err := add(v.Clone(), script(t, fmt.Sprintf("TEXT_MESSAGE_START {\"messageId\":\"m%d\",\"subagentRunId\":\"x\"}", n)))
		return err
	}
	const n = 4*1024 + 10 // so that it has just dropped the older half
	for i := range n {
		if i > 0 && reopens(i-1) == nil {
			t.Fatalf("the owner of the last of %d messages is not known", i)
		}
		if _, err := add(v, script(t, fmt.Sprintf("TEXT_MESSAGE_START {\"messageId\":\"m%d\"}\nTEXT_MESSAGE_END {\"messageId\":\"m%d\"}", i, i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := n - 500; i < n; i++ {
		if reopens(i) == nil {
			t.Fatalf("the owner of message %d is not known", i)
		}
	}
	if err := reopens(0); err != nil {
		t.Errorf("the owner of an old message is kept: %v", err)
	}
}

func TestVerifierForgetsEndedRuns(t *testing.T) {
	v := order.NewVerifier()
	for i := range 100 {
		if _, err := add(v, script(t, fmt.Sprintf("/r%d: run\n/r%d: end", i, i))); err != nil {
			t.Fatal(err)
		}
	}
	says := func(i int) string {
		return fmt.Sprint(v.Add(&script(t, fmt.Sprintf("/r%d: RUN_ERROR {\"message\":\"\"}", i))[0]))
	}
	if got := says(99); got != "run r99 has ended at offset 2" {
		t.Error(got)
	}
	if got := says(0); got != "run r0 is not open on thread main" {
		t.Error(got)
	}
}

// TestVerifierRulesCoverAGUI checks the number of AG-UI types, and that
// Tapedeck's types are not among them.
func TestVerifierRulesCoverAGUI(t *testing.T) {
	n := len(slices.DeleteFunc(payload.EventTypes(), func(typ string) bool { return !payload.IsAGUI(typ) }))
	if n != 31 {
		t.Errorf("%d AG-UI types", n)
	}
	if payload.IsAGUI(tapedeck.MessageAdded) || payload.IsAGUI("NO_SUCH") {
		t.Error("types of ours are AG-UI types")
	}
}
