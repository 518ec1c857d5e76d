package process_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/process"
)

const mapping = `{"type":"/k/t","lines":{
	"hello":{"as":"session","id":"/conv"},
	"say":{"as":"text","text":"/text"},
	"think":{"as":"thinking","text":"/text","whole":true},
	"call":{"as":"tool_start","id":"/id","name":"/tool","input":"/in"},
	"back":{"as":"tool_result","id":"/id","text":"/out","failed":"/bad"},
	"todo":{"as":"plan","list":"/items"},
	"cost":{"as":"usage","tokens":"/in","answer":"/out","cost":"/usd","model":"/model"},
	"noise":{"as":"ignore"}}}`

func mapped(t *testing.T, m string) process.Options {
	t.Helper()
	o := process.Options{Dialect: process.Mapped, Mapping: &process.Mapping{}}
	if err := json.Unmarshal([]byte(m), o.Mapping); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestMapping(t *testing.T) {
	got, err := run(t, t.Context(), scripted(t, "lines", mapped(t, mapping)), tapedeck.Invocation{Task: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, without(got, "REASONING"),
		`agent.linked {"runner":"process:x","nativeId":"c-1"}`,
		`TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"One "}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"two"}`,
		`TEXT_MESSAGE_END {"messageId":"m1"}`,
		`TOOL_CALL_START {"toolCallId":"c.7","toolCallName":"look"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.7","delta":"{\"a\":1}"}`,
		`TOOL_CALL_END {"toolCallId":"c.7"}`,
		`TOOL_CALL_RESULT {"messageId":"t.7","toolCallId":"c.7","content":"{\"x\":1}","role":"tool","metadata":{"tapedeck":{"error":true}}}`,
		`plan.updated {"entries":[{"content":"a","status":"completed"}]}`,
		`usage.reported {"model":"m","inputTokens":3,"outputTokens":4,"costUsd":0.5}`,
		`RAW {"event":{"k":{"t":"new"}},"source":"process:x"}`,
		`RAW {"event":"plain text","source":"process:x"}`,
	)
	if _, err := run(t, t.Context(), scripted(t, "lines", mapped(t, mapping)), tapedeck.Invocation{Task: "fail"}); err == nil {
		t.Error("an exit status of 3 is success")
	}
	strict := strings.Replace(mapping, `"noise":{"as":"ignore"}`, `"end":{"as":"result"}`, 1)
	if _, err := run(t, t.Context(), scripted(t, "lines", mapped(t, strict)), tapedeck.Invocation{Task: "talk"}); err == nil {
		t.Error("there is a word for the end, and it was not said")
	}
}
