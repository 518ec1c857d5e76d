package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
)

var mintedID = regexp.MustCompile(`think_[0-9A-Z]{26}`)

// shown returns events as the lines of a script. New ids become think_1,
// think_2 and so on.
func shown(events []tapedeck.Event) string {
	ids := map[string]string{}
	var b strings.Builder
	for _, e := range events {
		data := mintedID.ReplaceAllStringFunc(string(e.Data), func(id string) string {
			if ids[id] == "" {
				ids[id] = fmt.Sprintf("think_%d", len(ids)+1)
			}
			return ids[id]
		})
		if len(e.Data) > 0 && !json.Valid(e.Data) {
			data = "BROKEN " + data
		}
		fmt.Fprintf(&b, "%s/%s: %s %s\n", e.Thread, e.Invocation, e.Type, data)
	}
	return b.String()
}

func trimmed(text string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		b.WriteString(strings.TrimSpace(l) + "\n")
	}
	return b.String()
}

func TestAccept(t *testing.T) {
	const begin = "/r: RUN_STARTED {\"threadId\":\"main\",\"runId\":\"r\"}\n"
	const chunked = `"metadata":{"tapedeck":{"chunk":true}}`
	for name, test := range map[string]struct{ in, out string }{
		"a run that names itself": {
			"/: RUN_STARTED {\"runId\":\"r\"}\n/: RUN_FINISHED {}",
			"/r: RUN_STARTED {\"runId\":\"r\",\"threadId\":\"main\"}\n/r: RUN_FINISHED {\"threadId\":\"main\",\"runId\":\"r\"}",
		},
		"a run named by its envelope": {
			"b/r: RUN_STARTED\nb/: RUN_FINISHED { \"result\" : 1 }",
			"b/r: RUN_STARTED {\"runId\":\"r\",\"threadId\":\"b\"}\nb/r: RUN_FINISHED { \"result\" : 1 ,\"threadId\":\"b\",\"runId\":\"r\"}",
		},
		"a thread under another name": {
			"/: RUN_STARTED {\"threadId\":\"theirs\",\"runId\":\"r\"}\n/: RUN_FINISHED {}",
			"/r: RUN_STARTED {\"threadId\":\"theirs\",\"runId\":\"r\"}\n/r: RUN_FINISHED {\"threadId\":\"theirs\",\"runId\":\"r\"}",
		},
		"content of no invocation": {
			begin + "/: CUSTOM {\"name\":\"a\",\"value\":1}\n/: message.added {}\n/: x.y",
			begin + "/r: CUSTOM {\"name\":\"a\",\"value\":1}\n/: message.added {}\n/: x.y ",
		},
		"nulls": {
			begin + `/r: TEXT_MESSAGE_START {"messageId":"m","role":null,"name":null,"metadata":null,"subagentRunId":null,"timestamp":null,"rawEvent":null,"mine":null}
				/r: TEXT_MESSAGE_END {"name":null, "messageId":"m", "subagentRunId":null}
				/r: STATE_SNAPSHOT {"snapshot":null,"subagentRunId":null}
				/r: CUSTOM {"name":"a","value":null}
				/r: MESSAGES_SNAPSHOT {"subagentRunId":null,"messages":[{"id":"m","role":"assistant","content":null,"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""},"metadata":null}]}]}`,
			begin + `/r: TEXT_MESSAGE_START {"messageId":"m","mine":null}
				/r: TEXT_MESSAGE_END {"name":null,"messageId":"m"}
				/r: STATE_SNAPSHOT {"snapshot":null}
				/r: CUSTOM {"name":"a","value":null}
				/r: MESSAGES_SNAPSHOT {"messages":[{"id":"m","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}]}`,
		},
		"type and time": {
			begin + `/r: TEXT_MESSAGE_START {"type":"TEXT_MESSAGE_START","messageId":"m","timestamp":1767616496789.99}
				/r: TEXT_MESSAGE_END {"messageId":"m","timestamp":1.5e3}`,
			begin + `/r: TEXT_MESSAGE_START {"messageId":"m","timestamp":1767616496789}
				/r: TEXT_MESSAGE_END {"messageId":"m","timestamp":1500}`,
		},
		"the role of reasoning": {
			begin + `/r: REASONING_MESSAGE_START {"messageId":"m"}`,
			begin + `/r: REASONING_MESSAGE_START {"messageId":"m","role":"reasoning"}`,
		},
		"what is fine stays": {
			begin + `/r: TEXT_MESSAGE_START { "messageId" : "m", "shiny": {"a": [1, 2]}, "metadata":{"x":null} }`,
			begin + `/r: TEXT_MESSAGE_START { "messageId" : "m", "shiny": {"a": [1, 2]}, "metadata":{"x":null} }`,
		},
		"text in chunks": {
			begin + `/r: TEXT_MESSAGE_CHUNK {"messageId":"m","role":"user","name":"Ada","delta":"Hel","timestamp":5,"metadata":{"k":1},"rawEvent":{"x":1}}
				/r: TEXT_MESSAGE_CHUNK {"delta":"lo","shiny":true,"cuts":[[1,0],[1,5]]}
				/r: TEXT_MESSAGE_CHUNK {"messageId":"m","metadata":{"usage":3}}
				/r: TEXT_MESSAGE_CHUNK {}
				/r: RUN_FINISHED {}`,
			begin + `/r: TEXT_MESSAGE_START {"messageId":"m","role":"user","name":"Ada","timestamp":5,"metadata":{"k":1,"tapedeck":{"chunk":true}}}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"Hel","timestamp":5,"metadata":{"k":1},"rawEvent":{"x":1}}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"lo","shiny":true,"cuts":[[1,0],[1,5]]}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"","metadata":{"usage":3}}
				/r: TEXT_MESSAGE_END {"messageId":"m"}
				/r: RUN_FINISHED {"threadId":"main","runId":"r"}`,
		},
		"a first chunk without text": {
			begin + `/r: TEXT_MESSAGE_CHUNK {"messageId":"m","metadata":{"tapedeck":{"x":1}}}`,
			begin + `/r: TEXT_MESSAGE_START {"messageId":"m","metadata":{"tapedeck":{"chunk":true,"x":1}}}`,
		},
		"metadata of other shapes": {
			begin + `/r: TEXT_MESSAGE_CHUNK {"messageId":"m","metadata":{"tapedeck":null}}
				/r: TEXT_MESSAGE_CHUNK {"messageId":"n","metadata":{"k":1,"tapedeck":[]}}`,
			begin + `/r: TEXT_MESSAGE_START {"messageId":"m","metadata":{"tapedeck":{"chunk":true}}}
				/r: TEXT_MESSAGE_END {"messageId":"m"}
				/r: TEXT_MESSAGE_START {"messageId":"n","metadata":{"k":1,"tapedeck":{"chunk":true}}}`,
		},
		"calls in chunks, one after the other": {
			begin + `/r: TOOL_CALL_CHUNK {"toolCallId":"c","toolCallName":"f","parentMessageId":"m","delta":"{"}
				/r: TOOL_CALL_CHUNK {"delta":"}","toolCallName":"f"}
				/r: TOOL_CALL_CHUNK {"toolCallId":"d","toolCallName":"g"}
				/r: TOOL_CALL_RESULT {"messageId":"x","toolCallId":"c","content":"ok"}`,
			begin + `/r: TOOL_CALL_START {"toolCallId":"c","toolCallName":"f","parentMessageId":"m",` + chunked + `}
				/r: TOOL_CALL_ARGS {"toolCallId":"c","delta":"{"}
				/r: TOOL_CALL_ARGS {"toolCallId":"c","delta":"}"}
				/r: TOOL_CALL_END {"toolCallId":"c"}
				/r: TOOL_CALL_START {"toolCallId":"d","toolCallName":"g",` + chunked + `}
				/r: TOOL_CALL_END {"toolCallId":"d"}
				/r: TOOL_CALL_RESULT {"messageId":"x","toolCallId":"c","content":"ok"}`,
		},
		"thoughts, then text": {
			begin + `/r: REASONING_MESSAGE_CHUNK {"messageId":"t","delta":"hm"}
				/r: RAW {"event":1}
				/r: REASONING_MESSAGE_CHUNK {"delta":"!"}
				/r: TEXT_MESSAGE_CHUNK {"messageId":"m","delta":"a"}
				/r: STEP_STARTED {"stepName":"s"}`,
			begin + `/r: REASONING_MESSAGE_START {"messageId":"t","role":"reasoning",` + chunked + `}
				/r: REASONING_MESSAGE_CONTENT {"messageId":"t","delta":"hm"}
				/r: RAW {"event":1}
				/r: REASONING_MESSAGE_CONTENT {"messageId":"t","delta":"!"}
				/r: REASONING_MESSAGE_END {"messageId":"t"}
				/r: TEXT_MESSAGE_START {"messageId":"m",` + chunked + `}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"a"}
				/r: TEXT_MESSAGE_END {"messageId":"m"}
				/r: STEP_STARTED {"stepName":"s"}`,
		},
		"a lane for each subagent": {
			begin + `/r: TEXT_MESSAGE_CHUNK {"messageId":"m","delta":"a"}
				/r: TEXT_MESSAGE_CHUNK {"messageId":"n","delta":"b","subagentRunId":"s"}
				/r: TEXT_MESSAGE_CHUNK {"delta":"A"}
				/r: TEXT_MESSAGE_CHUNK {"delta":"B","subagentRunId":"s"}
				/r: TEXT_MESSAGE_CHUNK {"delta":"C","messageId":"n"}
				/r: CUSTOM {"name":"x","value":1,"subagentRunId":"t"}
				/r: STATE_SNAPSHOT {"snapshot":1}
				/r: TEXT_MESSAGE_CHUNK {"delta":"D"}
				/r: MESSAGES_SNAPSHOT {"messages":[]}`,
			begin + `/r: TEXT_MESSAGE_START {"messageId":"m",` + chunked + `}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"a"}
				/r: TEXT_MESSAGE_START {"messageId":"n","subagentRunId":"s",` + chunked + `}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"n","subagentRunId":"s","delta":"b"}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"A"}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"n","subagentRunId":"s","delta":"B"}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"n","subagentRunId":"s","delta":"C"}
				/r: CUSTOM {"name":"x","value":1,"subagentRunId":"t"}
				/r: TEXT_MESSAGE_END {"messageId":"m"}
				/r: STATE_SNAPSHOT {"snapshot":1}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"n","subagentRunId":"s","delta":"D"}
				/r: TEXT_MESSAGE_END {"messageId":"n","subagentRunId":"s"}
				/r: MESSAGES_SNAPSHOT {"messages":[]}`,
		},
		"chunks with an end": {
			begin + `/r: TEXT_MESSAGE_CHUNK {"messageId":"m","delta":"a"}
				/r: TEXT_MESSAGE_CHUNK {"messageId":"n","delta":"b","subagentRunId":"s"}
				/r: TEXT_MESSAGE_END {"messageId":"m"}
				/r: TEXT_MESSAGE_END {"messageId":"n","subagentRunId":"s"}`,
			begin + `/r: TEXT_MESSAGE_START {"messageId":"m",` + chunked + `}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"a"}
				/r: TEXT_MESSAGE_START {"messageId":"n","subagentRunId":"s",` + chunked + `}
				/r: TEXT_MESSAGE_CONTENT {"messageId":"n","subagentRunId":"s","delta":"b"}
				/r: TEXT_MESSAGE_END {"messageId":"m"}
				/r: TEXT_MESSAGE_END {"messageId":"n","subagentRunId":"s"}`,
		},
		"thinking old and new": {
			begin + `/: THINKING_START
				/: REASONING_START {"messageId":"new"}
				/: TEXT_MESSAGE_START {"messageId":"think_text"}
				/: THINKING_END`,
			begin + `/r: REASONING_START {"messageId":"think_1"}
				/r: REASONING_START {"messageId":"new"}
				/r: TEXT_MESSAGE_START {"messageId":"think_text"}
				/r: REASONING_END {"messageId":"think_1"}`,
		},
		"what is no chunk": {
			begin + `/r: STEP_STARTED {"stepName":"a",` + chunked + `}
				/r: TEXT_MESSAGE_START {"messageId":"m","metadata":{"tapedeck":{"chunk":false}}}
				/r: STATE_SNAPSHOT {"snapshot":1}`,
			begin + `/r: STEP_STARTED {"stepName":"a",` + chunked + `}
				/r: TEXT_MESSAGE_START {"messageId":"m","metadata":{"tapedeck":{"chunk":false}}}
				/r: STATE_SNAPSHOT {"snapshot":1}`,
		},
		"the retired thinking": {
			begin + `/: THINKING_START {"type":"THINKING_START","title":"Plan"}
				/: THINKING_TEXT_MESSAGE_START
				/: THINKING_TEXT_MESSAGE_CONTENT {"delta":"hm"}
				/: THINKING_TEXT_MESSAGE_END {}
				/: THINKING_TEXT_MESSAGE_START {}
				/: THINKING_TEXT_MESSAGE_END {}
				/: THINKING_END {}
				/: THINKING_OF_YOU {}`,
			begin + `/r: REASONING_START {"title":"Plan","messageId":"think_1"}
				/r: REASONING_MESSAGE_START {"messageId":"think_2","role":"reasoning"}
				/r: REASONING_MESSAGE_CONTENT {"delta":"hm","messageId":"think_2"}
				/r: REASONING_MESSAGE_END {"messageId":"think_2"}
				/r: REASONING_MESSAGE_START {"messageId":"think_3","role":"reasoning"}
				/r: REASONING_MESSAGE_END {"messageId":"think_3"}
				/r: REASONING_END {"messageId":"think_1"}
				/: THINKING_OF_YOU {}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := script(t, test.in)
			all, err := order.NewVerifier().Accept(in)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := shown(all), trimmed(test.out); !cmp.Equal(trimmed(got), want) {
				t.Error(cmp.Diff(want, got))
			}
			var one []tapedeck.Event
			v := order.NewVerifier()
			for i := range in {
				v = v.Clone()
				out, err := v.Accept(in[i : i+1])
				if err != nil {
					t.Fatal(err)
				}
				one = append(one, out...)
			}
			if shown(one) != shown(all) {
				t.Errorf("one at a time it becomes\n%s", shown(one))
			}
			if n, err := add(order.NewVerifier(), all); err != nil {
				t.Errorf("what was accepted is refused at %d: %v", n, err)
			}
		})
	}
}

func TestAcceptRefuses(t *testing.T) {
	const conflict, invalid = tapedeck.Conflict, tapedeck.Invalid
	const begin = "run\n"
	for name, test := range map[string]struct {
		text string // the last line must be refused
		kind tapedeck.Kind
		says string
	}{
		"content of no run":             {`/: CUSTOM {"name":"a","value":1}`, conflict, "thread main has no open run"},
		"a chunk outside a run":         {`/: TEXT_MESSAGE_CHUNK {"messageId":"m"}`, conflict, "thread main has no open run"},
		"a chunk that names nothing":    {begin + `TEXT_MESSAGE_CHUNK {"delta":"x"}`, conflict, "continues no open text message, and has no messageId"},
		"a call without a name":         {begin + `TOOL_CALL_CHUNK {"toolCallId":"c"}`, invalid, `the first chunk of tool call "c" has no toolCallName`},
		"a chunk of another kind":       {begin + "TEXT_MESSAGE_CHUNK {\"messageId\":\"m\"}\nTOOL_CALL_CHUNK {\"delta\":\"x\"}", conflict, "continues no open tool call"},
		"a chunk with another role":     {begin + "TEXT_MESSAGE_CHUNK {\"messageId\":\"m\"}\nTEXT_MESSAGE_CHUNK {\"role\":\"user\"}", conflict, `began with the role "assistant", but a later chunk has "user"`},
		"a call with two names":         {begin + "TOOL_CALL_CHUNK {\"toolCallId\":\"c\",\"toolCallName\":\"f\"}\nTOOL_CALL_CHUNK {\"toolCallName\":\"g\"}", conflict, `began with the toolCallName "f"`},
		"a chunk of another author":     {begin + "TEXT_MESSAGE_CHUNK {\"messageId\":\"m\"}\nTEXT_MESSAGE_CHUNK {\"messageId\":\"m\",\"subagentRunId\":\"s\"}", conflict, "belongs to the agent itself"},
		"a chunk of two lanes":          {begin + "TEXT_MESSAGE_CHUNK {\"messageId\":\"m\",\"subagentRunId\":\"s\"}\nTEXT_MESSAGE_CHUNK {\"messageId\":\"n\",\"subagentRunId\":\"t\"}\nTEXT_MESSAGE_CHUNK {\"delta\":\"\"}", conflict, "which of 2 open text messages"},
		"content after chunks":          {begin + "TEXT_MESSAGE_CHUNK {\"messageId\":\"m\"}\nTEXT_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\"\"}", conflict, `text message "m" is not open`},
		"a chunk of a bad shape":        {begin + `TEXT_MESSAGE_CHUNK {"messageId":5}`, invalid, "must be a string"},
		"a type that contradicts":       {begin + `CUSTOM {"type":"RAW","name":"a","value":1}`, invalid, `has the type "RAW"`},
		"a time that is a string":       {begin + `CUSTOM {"timestamp":"now","name":"a","value":1}`, invalid, "timestamp in the data of CUSTOM must be an integer"},
		"a time too far":                {begin + `CUSTOM {"timestamp":1e300,"name":"a","value":1}`, invalid, "must be an integer"},
		"a required member null":        {begin + `TEXT_MESSAGE_START {"messageId":null}`, invalid, "must be a string"},
		"a thought that is not begun":   {begin + `THINKING_TEXT_MESSAGE_CONTENT {"delta":"x"}`, conflict, "needs open reasoning"},
		"a thought outside a run":       {`/: THINKING_END`, conflict, "needs open reasoning"},
		"data that is no object":        {begin + `CUSTOM []`, invalid, "is not a JSON object"},
		"a run of no name":              {`/: RUN_STARTED {}`, invalid, "the run's id is empty"},
		"a run that contradicts":        {`/r: RUN_STARTED {"runId":"s"}`, invalid, "belongs to invocation r"},
		"a sub-agent's span, untagged?": {begin + "REASONING_START {\"messageId\":\"m\",\"subagentRunId\":\"s\"}\nREASONING_END {\"messageId\":\"m\",\"subagentRunId\":\"t\"}", conflict, `belongs to sub-agent "s"`},
	} {
		t.Run(name, func(t *testing.T) {
			in := script(t, test.text)
			v := order.NewVerifier()
			if _, err := v.Accept(in[:len(in)-1]); err != nil {
				t.Fatal(err)
			}
			before := v.Open("main")
			_, err := v.Accept(in[len(in)-1:])
			if tapedeck.KindOf(err) != test.kind || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("%s: %v", tapedeck.KindOf(err), err)
			}
			if !cmp.Equal(before, v.Open("main")) {
				t.Error("the refusal left a trace")
			}
		})
	}
}

func TestAcceptAllOrNone(t *testing.T) {
	v := order.NewVerifier()
	in := script(t, "run\nTEXT_MESSAGE_START {\"messageId\":\"m\"}\nTEXT_MESSAGE_END {\"messageId\":\"n\"}\nend")
	out, err := v.Accept(in)
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != tapedeck.Conflict || !strings.HasPrefix(e.Message, "event 3 of 4: text message") || e.Hint == "" || out != nil {
		t.Errorf("got %+v", err)
	}
	if len(v.Runs()) != 0 {
		t.Error("the first two were kept")
	}
	if out, err := v.Accept(nil); len(out) != 0 || err != nil {
		t.Errorf("no events gave %v, %v", out, err)
	}
}

func TestAcceptKeepsTheCallersEvents(t *testing.T) {
	in := script(t, "/: RUN_STARTED {\"runId\":\"r\",\"metadata\":null}\n/: TEXT_MESSAGE_CHUNK {\"messageId\":\"m\",\"delta\":\"x\"}")
	before := shown(in)
	if _, err := order.NewVerifier().Accept(in); err != nil || shown(in) != before {
		t.Errorf("%v; the caller's events became %s", err, shown(in))
	}
}

// TestChunksSurviveRestart continues a stream of chunks with a verifier that
// was restored from the log.
func TestChunksSurviveRestart(t *testing.T) {
	in := script(t, "run\nTEXT_MESSAGE_CHUNK {\"messageId\":\"m\",\"role\":\"user\",\"delta\":\"a\"}")
	kept, err := order.NewVerifier().Accept(in)
	if err != nil {
		t.Fatal(err)
	}
	v := order.NewVerifier()
	if _, err := add(v, kept); err != nil {
		t.Fatal(err)
	}
	out, err := v.Accept(script(t, "TEXT_MESSAGE_CHUNK {\"delta\":\"b\",\"role\":\"user\"}\nend"))
	want := "/r: TEXT_MESSAGE_CONTENT {\"messageId\":\"m\",\"delta\":\"b\"}\n/r: TEXT_MESSAGE_END {\"messageId\":\"m\"}\n/r: RUN_FINISHED {\"threadId\":\"main\",\"runId\":\"r\"}\n"
	if err != nil || shown(out) != want {
		t.Errorf("%v\n%s", err, shown(out))
	}
}
