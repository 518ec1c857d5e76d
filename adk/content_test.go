package adk

import (
	"testing"

	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck"
)

// The text of a message and the arguments of a call are restored with the characters that
// came in two deltas.
func TestRestoreHalves(t *testing.T) {
	c := contents{}
	for _, e := range []tapedeck.Event{
		{Type: tapedeck.TextMessageContent, Data: []byte(`{"messageId":"m","delta":"go \ud83d"}`)},
		{Type: tapedeck.TextMessageContent, Data: []byte(`{"messageId":"m","delta":"\ude80 on"}`)},
		{Type: tapedeck.ToolCallArgs, Data: []byte(`{"toolCallId":"c","delta":"{\"q\":\"\ud83d"}`)},
		{Type: tapedeck.ToolCallArgs, Data: []byte(`{"toolCallId":"c","delta":"\ude80\"}"}`)},
	} {
		c.add(&e)
	}
	words, call := &genai.Part{}, &genai.Part{FunctionCall: &genai.FunctionCall{}}
	if !c.restore(words, &piece{ID: "m"}) || words.Text != "go 🚀 on" {
		t.Errorf("the text is %q", words.Text)
	}
	if !c.restore(call, &piece{ID: "c"}) || call.FunctionCall.Args["q"] != "🚀" {
		t.Errorf("the arguments are %v", call.FunctionCall.Args)
	}
}
