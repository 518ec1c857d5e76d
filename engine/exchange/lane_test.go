package exchange

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// TestManySubagents: more sub-agents are active than runs can be open. Those
// without events for the longest time count as ended. When they continue, they get
// a new run.
func TestManySubagents(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"user","message":{"content":"go"}}` + "\n" + `{"type":"assistant","message":{"content":"I do"}}` + "\n")
	const agents = 3000
	for round := range 2 {
		for i := range agents {
			fmt.Fprintf(&b, `{"type":"assistant","isSidechain":true,"agentId":"a%d","message":{"content":"round %d"}}`+"\n", i, round)
		}
	}
	b.WriteString(`{"type":"assistant","message":{"content":"done"}}`)
	sessions, _ := mustRead(t, ClaudeCode, b.String())
	s := fold(t, sessions[0])
	if len(s.Threads) != agents+1 || len(s.Runs) != 2*agents+1 || len(s.Messages) != 2*agents+3 {
		t.Errorf("%d threads, %d runs, %d messages", len(s.Threads), len(s.Runs), len(s.Messages))
	}
}

// TestAnswers: to which call a result belongs if the ids are ambiguous.
func TestAnswers(t *testing.T) {
	call := func(ids ...string) string {
		for i, id := range ids {
			ids[i] = `{"id":"` + id + `","function":{"name":"f"}}`
		}
		return `{"role":"assistant","tool_calls":[` + strings.Join(ids, ",") + `]}`
	}
	answer := func(id, text string) string {
		return `{"role":"tool","tool_call_id":"` + id + `","content":"` + text + `"}`
	}
	said := `{"role":"assistant","content":"I look."}`
	tests := []struct {
		name string
		in   []string
		want string // name=result of each call
	}{
		{"by id", []string{call("a", "b"), answer("b", "B"), answer("a", "A")}, "a=A b=B"},
		{"an id again, later", []string{call("a"), answer("a", "1"), call("a"), answer("a", "2")}, "a=1 a_4=2"},
		{"an id again, at once", []string{call("a", "a"), answer("a", "1"), answer("a", "2")}, "a=1 a_2=2"},
		{"no ids", []string{call("", ""), answer("", "1"), answer("", "2")}, "call_2=1 call_3=2"},
		{"answers without ids", []string{call("a", "b"), answer("", "1"), answer("", "2")}, "a=1 b=2"},
		{"some answers without ids", []string{call("a", "b", "c"), answer("b", "2"), answer("", "1"), answer("", "3")}, "a=1 b=2 c=3"},
		{"more answers than calls", []string{call("a"), answer("", "1"), answer("", "2"), answer("", "3")}, "a=1 call_3=2 call_5=3"},
		{"no calls and no ids", []string{said, answer("", "1"), answer("", "2"), said, answer("", "3")}, "call_2=1 call_4=2 call_7=3"},
		{"of the answer before", []string{call("a"), call("b"), answer("", "2"), answer("a", "1")}, "a=1 b=2"},
		{"an answer again", []string{call("a"), answer("a", "1"), answer("a", "2")}, "a=2"},
		{"to no call", []string{answer("a", "1"), call("a"), answer("a", "2")}, "a=1 a_3=2"},
		{"after the user went on", []string{call("a"), `{"role":"user","content":"?"}`, answer("a", "late")}, "a=late"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sessions, _ := mustRead(t, OpenAIMessages, "["+strings.Join(tt.in, ",")+"]")
			var got []string
			for _, k := range fold(t, sessions[0]).Calls {
				if k.Result == nil {
					t.Fatalf("call %s has no answer", k.ID)
				}
				got = append(got, k.ID+"="+k.Result.Text)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got %s, want %s", s, tt.want)
			}
		})
	}
}

// TestUsageCountsAnAnswerOnce: the lines of a streamed answer repeat its usage so
// far.
func TestUsageCountsAnAnswerOnce(t *testing.T) {
	line := func(id string, out int) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"m","content":"x","usage":{"input_tokens":10,"cache_read_input_tokens":2,"output_tokens":%d}}}`, id, out)
	}
	sessions, _ := mustRead(t, ClaudeCode, strings.Join([]string{line("a", 1), line("a", 5), line("b", 7)}, "\n"))
	var reports []int64
	for _, e := range sessions[0] {
		switch e.Type {
		case tapedeck.UsageReported:
			u, err := payload.DecodeAs[payload.UsageReported](e)
			if err != nil {
				t.Fatal(err)
			}
			reports = append(reports, *u.OutputTokens)
		case tapedeck.RunFinished:
			f, err := payload.DecodeAs[payload.RunFinished](e)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Usage) != 1 || *f.Usage[0].OutputTokens != 12 || *f.Usage[0].InputTokens != 24 {
				t.Errorf("%s", e.Data)
			}
		}
	}
	if fmt.Sprint(reports) != "[5 7]" {
		t.Errorf("reported %v", reports)
	}
}
