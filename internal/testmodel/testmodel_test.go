package testmodel_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/internal/testmodel"
)

// A said is a decoded answer of any provider.
type said struct {
	Thought, Text string
	Calls         []string // NAME ARGUMENTS
	Input, Output int
	Stop          string
}

// A wire is the API of one provider.
type wire struct {
	path   func(stream bool) string
	body   func(stream bool, task string, results int) string
	stream func(*said, []byte)
	whole  func(*said, []byte)
}

const (
	shellSchema = `{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`
	todoSchema  = `{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string"},"status":{"type":"string"}},"required":["content","status"]}}}}`
)

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func fixed(path string) func(bool) string { return func(bool) string { return path } }

var wires = map[string]wire{
	"chat": {
		path: fixed("/v1/chat/completions"),
		body: func(stream bool, task string, results int) string {
			return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"before"},{"role":"user","content":[{"type":"text","text":%s}]}%s],
				"tools":[{"type":"function","function":{"name":"todo_write","parameters":%s}},{"type":"function","function":{"name":"bash","parameters":%s}}]}`,
				stream, quoted(task), repeat(results, `,{"role":"tool","tool_call_id":"c%d","content":"r"}`), todoSchema, shellSchema)
		},
		stream: chatPiece("delta"), whole: chatPiece("message"),
	},
	"responses": {
		path: fixed("/v1/responses"),
		body: func(stream bool, task string, results int) string {
			return fmt.Sprintf(`{"model":"m","stream":%v,"input":[{"role":"user","content":"before"},{"role":"user","content":[{"type":"input_text","text":%s}]}%s],
				"tools":[{"type":"function","name":"todo_write","parameters":%s},{"type":"function","name":"bash","parameters":%s}]}`,
				stream, quoted(task), repeat(results, `,{"type":"function_call_output","call_id":"c%d","output":"r"}`), todoSchema, shellSchema)
		},
		stream: responsesPiece,
		whole:  func(s *said, b []byte) { s.response(b) },
	},
	"anthropic": {
		path: fixed("/v1/messages"),
		body: func(stream bool, task string, results int) string {
			return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"before"},{"role":"user","content":[{"type":"text","text":%s}]}%s],
				"tools":[{"name":"todo_write","input_schema":%s},{"name":"bash","input_schema":%s}]}`,
				stream, quoted(task), repeat(results, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"r"},{"type":"text","text":"<system-reminder>x</system-reminder>"}]}`), todoSchema, shellSchema)
		},
		stream: anthropicPiece, whole: anthropicWhole,
	},
	"gemini": {
		path: func(stream bool) string {
			if stream {
				return "/v1beta/models/m:streamGenerateContent?alt=sse"
			}
			return "/v1beta/models/m:generateContent"
		},
		body: func(_ bool, task string, results int) string {
			return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":"before"}]},{"role":"user","parts":[{"text":%s}]}%s],
				"tools":[{"functionDeclarations":[{"name":"todo_write","parameters":%s},{"name":"bash","parametersJsonSchema":%s}]}]}`,
				quoted(task), repeat(results, `,{"role":"user","parts":[{"functionResponse":{"name":"n%d","response":{}}}]}`), todoSchema, shellSchema)
		},
		stream: geminiPiece, whole: geminiPiece,
	},
}

func chatPiece(member string) func(*said, []byte) {
	return func(s *said, b []byte) {
		var c struct {
			Choices []map[string]json.RawMessage
			Usage   struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
			}
		}
		if json.Unmarshal(b, &c) != nil {
			return // [DONE]
		}
		s.Input, s.Output = s.Input+c.Usage.Prompt, s.Output+c.Usage.Completion
		for _, choice := range c.Choices {
			var d struct {
				Content   string
				Reasoning string `json:"reasoning_content"`
				Calls     []struct {
					Index    int
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			_ = json.Unmarshal(choice[member], &d)
			s.Text, s.Thought = s.Text+d.Content, s.Thought+d.Reasoning
			for i, k := range d.Calls {
				s.call(max(i, k.Index), k.Function.Name, k.Function.Arguments)
			}
			var finish string
			_ = json.Unmarshal(choice["finish_reason"], &finish)
			s.Stop += finish
		}
	}
}

func (s *said) call(i int, name, args string) {
	if name != "" {
		s.Calls = append(s.Calls, name+" ")
	}
	s.Calls[i] += args
}

func responsesPiece(s *said, b []byte) {
	var e struct {
		Type, Delta, Arguments string
		Item                   struct{ Type, Name string }
		Response               json.RawMessage
	}
	_ = json.Unmarshal(b, &e)
	switch e.Type {
	case "response.output_text.delta":
		s.Text += e.Delta
	case "response.reasoning_summary_text.delta":
		s.Thought += e.Delta
	case "response.function_call_arguments.delta":
		s.Calls[len(s.Calls)-1] += e.Delta
	case "response.output_item.added":
		if e.Item.Type == "function_call" {
			s.Calls = append(s.Calls, e.Item.Name+" ")
		}
	case "response.completed":
		whole := said{}
		whole.response(e.Response)
		if s.Input, s.Output, s.Stop = whole.Input, whole.Output, whole.Stop; !cmp.Equal(*s, whole) {
			s.Stop = "the streamed response differs from the whole one"
		}
	}
}

func (s *said) response(b []byte) {
	var r struct {
		Output []struct {
			Type, Name, Arguments string
			Content, Summary      []struct{ Text string }
		}
		Usage struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		}
	}
	_ = json.Unmarshal(b, &r)
	s.Input, s.Output, s.Stop = r.Usage.Input, r.Usage.Output, "stop"
	for _, it := range r.Output {
		for _, c := range it.Content {
			s.Text += c.Text
		}
		for _, c := range it.Summary {
			s.Thought += c.Text
		}
		if it.Type == "function_call" {
			s.Calls, s.Stop = append(s.Calls, it.Name+" "+it.Arguments), "tool_calls"
		}
	}
}

type anthropicBlock struct {
	Type, Text, Thinking, Name string
	Input                      json.RawMessage
	PartialJSON                string `json:"partial_json"`
}

func (s *said) block(c anthropicBlock) {
	s.Text, s.Thought = s.Text+c.Text, s.Thought+c.Thinking
	if c.Type == "tool_use" {
		s.Calls = append(s.Calls, c.Name+" ")
	}
	if args := strings.TrimSuffix(string(c.Input), "{}") + c.PartialJSON; args != "" {
		s.Calls[len(s.Calls)-1] += args
	}
}

func (s *said) stop(reason string) {
	s.Stop += map[string]string{"end_turn": "stop", "tool_use": "tool_calls"}[reason]
}

type anthropicUsage struct {
	Input  int `json:"input_tokens"`
	Cached int `json:"cache_read_input_tokens"`
	Output int `json:"output_tokens"`
}

func anthropicPiece(s *said, b []byte) {
	var e struct {
		Message struct{ Usage anthropicUsage }
		Block   anthropicBlock `json:"content_block"`
		Delta   struct {
			anthropicBlock
			Stop string `json:"stop_reason"`
		}
		Usage anthropicUsage
	}
	_ = json.Unmarshal(b, &e)
	s.Input += e.Message.Usage.Input + e.Message.Usage.Cached
	s.Output += e.Usage.Output
	s.block(e.Block)
	s.block(e.Delta.anthropicBlock)
	s.stop(e.Delta.Stop)
}

func anthropicWhole(s *said, b []byte) {
	var m struct {
		Content []anthropicBlock
		Stop    string `json:"stop_reason"`
		Usage   anthropicUsage
	}
	_ = json.Unmarshal(b, &m)
	for _, c := range m.Content {
		s.block(c)
	}
	s.stop(m.Stop)
	s.Input, s.Output = m.Usage.Input+m.Usage.Cached, m.Usage.Output
}

func geminiPiece(s *said, b []byte) {
	var r struct {
		Candidates []struct {
			Finish  string `json:"finishReason"`
			Content struct {
				Parts []struct {
					Text    string
					Thought bool
					Call    *struct {
						Name string
						Args json.RawMessage
					} `json:"functionCall"`
				}
			}
		}
		Usage struct{ PromptTokenCount, CandidatesTokenCount, ThoughtsTokenCount int } `json:"usageMetadata"`
	}
	_ = json.Unmarshal(b, &r)
	s.Input, s.Output = r.Usage.PromptTokenCount, r.Usage.CandidatesTokenCount+r.Usage.ThoughtsTokenCount
	for _, c := range r.Candidates {
		for _, p := range c.Content.Parts {
			switch {
			case p.Call != nil:
				s.Calls = append(s.Calls, p.Call.Name+" "+string(p.Call.Args))
			case p.Thought:
				s.Thought += p.Text
			default:
				s.Text += p.Text
			}
		}
		if c.Finish == "STOP" {
			s.Stop = "stop"
			if s.Calls != nil {
				s.Stop = "tool_calls"
			}
		}
	}
}

// ask sends a request and reads the answer. The error is an error of the stream.
func (w wire) ask(t *testing.T, h http.Handler, stream bool, task string, results int) (said, int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model"+w.path(stream), strings.NewReader(w.body(stream, task, results)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := testmodel.Transport(h).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var s said
	if !stream {
		b, err := io.ReadAll(resp.Body)
		w.whole(&s, b)
		return s, resp.StatusCode, err
	}
	for f, err := range sse.Read(resp.Body) {
		if err != nil {
			return s, resp.StatusCode, err
		}
		w.stream(&s, f.Data)
	}
	return s, resp.StatusCode, nil
}

func TestAnswers(t *testing.T) {
	const (
		shell    = `bash {"command":"echo hello from the tool | tee made-by-agent.txt"}`
		todo     = `todo_write {"todos":[{"content":"Write the file","status":"in_progress"},{"content":"Report","status":"pending"}]}`
		todoDone = `todo_write {"todos":[{"content":"Write the file","status":"completed"},{"content":"Report","status":"in_progress"}]}`
	)
	for _, tt := range []struct {
		name, task string
		results    int
		want       said
	}{
		{"a greeting", "hi", 0, said{Text: "Hello! This is answer number 2.", Stop: "stop"}},
		{"a thought", "[think]", 0, said{Thought: "The user has asked for something. I think about it first.", Text: "Hello! This is answer number 2.", Stop: "stop"}},
		{"tools, first", "[tools]", 0, said{Text: "Now I call todo_write.", Calls: []string{todo}, Stop: "tool_calls"}},
		{"tools, second", "[tools]", 1, said{Text: "Now I call bash.", Calls: []string{shell}, Stop: "tool_calls"}},
		{"tools, third", "[tools]", 2, said{Text: "Now I call todo_write.", Calls: []string{todoDone}, Stop: "tool_calls"}},
		{"tools, last", "[tools]", 3, said{Text: "Done after 3 tool results.", Stop: "stop"}},
		{"one tool", `x [tool read_file {"a":{"b":[1]}}] y`, 0, said{Text: "Now I call read_file.", Calls: []string{`read_file {"a":{"b":[1]}}`}, Stop: "tool_calls"}},
		{"all at once", `[parallel] [tool a {"x":1}] [tool b {"y":2}]`, 0, said{Text: "Now I call a.", Calls: []string{`a {"x":1}`, `b {"y":2}`}, Stop: "tool_calls"}},
		{"after all at once", `[parallel] [tool a {"x":1}] [tool b {"y":2}]`, 2, said{Text: "Done after 2 tool results.", Stop: "stop"}},
		{"an answer", `[answer "It is \"so\"."] [tool a {}]`, 1, said{Text: `It is "so".`, Stop: "stop"}},
		{"an answer as JSON", `[answer {"a":[1]}] more`, 0, said{Text: `{"a":[1]}`, Stop: "stop"}},
		{"an answer after a tool", `[answer "x"] [tool a {"x":1}]`, 0, said{Text: "Now I call a.", Calls: []string{`a {"x":1}`}, Stop: "tool_calls"}},
	} {
		tt.want.Input, tt.want.Output = 100, 20
		for name, w := range wires {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/%v", tt.name, name, stream), func(t *testing.T) {
					got, status, err := w.ask(t, testmodel.New(testmodel.Options{}), stream, tt.task, tt.results)
					if err != nil || status != 200 {
						t.Fatal(status, err)
					}
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Error(diff)
					}
				})
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for name, w := range wires {
		t.Run(name, func(t *testing.T) {
			m := testmodel.New(testmodel.Options{})
			for i, want := range []int{429, 429, 200, 200} {
				if _, status, _ := w.ask(t, m, true, "[error 429]", 0); status != want {
					t.Errorf("request %d: %d, want %d", i, status, want)
				}
			}
			for range 4 {
				if _, status, _ := w.ask(t, m, true, "[error 500]", 0); status != 500 {
					t.Errorf("%d, want 500", status)
				}
			}
			got, _, err := w.ask(t, m, true, "[cut]", 0)
			if !errors.Is(err, io.ErrUnexpectedEOF) || got.Text != "Hello! This is " {
				t.Errorf("cut: %q, %v", got.Text, err)
			}
			if _, _, err := w.ask(t, m, true, "[cut once]", 0); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the first cut: %v", err)
			}
			if got, _, err := w.ask(t, m, true, "[cut once]", 0); err != nil || !strings.HasPrefix(got.Text, "Hello! This is answer") {
				t.Errorf("after the cut: %q, %v", got.Text, err)
			}
		})
	}
}

func TestSlow(t *testing.T) {
	for name, w := range wires {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				got, _, err := w.ask(t, testmodel.New(testmodel.Options{}), true, "[slow]", 0)
				if n := len(strings.Fields(got.Text)); err != nil || n != 300 || time.Since(begin) != 30*time.Second {
					t.Errorf("%d words in %v, %v", n, time.Since(begin), err)
				}
				begin = time.Now()
				_, _, err = w.ask(t, testmodel.New(testmodel.Options{Pace: time.Second}), true, "hi", 0)
				if took := time.Since(begin); err != nil || took != 6*time.Second {
					t.Errorf("a greeting of six words in %v, %v", took, err)
				}
			})
		})
	}
}

// TestOverTheNetwork checks over a real connection that a disconnect of the client ends
// the handler, and that [cut] is an error of the connection.
func TestOverTheNetwork(t *testing.T) {
	m := testmodel.New(testmodel.Options{Pause: time.Hour})
	ended := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		m.ServeHTTP(w, r)
	}))
	defer s.Close()
	w := wires["chat"]
	post := func(task string) *http.Response {
		resp, err := http.Post(s.URL+w.path(true), "application/json", strings.NewReader(w.body(true, task, 0)))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := post("[cut]")
	if b, err := io.ReadAll(resp.Body); err == nil || !bytes.Contains(b, []byte("Hello")) {
		t.Errorf("the cut: %s, %v", b, err)
	}
	<-ended
	post("[slow]").Body.Close()
	<-ended
}

func TestLog(t *testing.T) {
	var log bytes.Buffer
	m := testmodel.New(testmodel.Options{Log: &log})
	if _, status, _ := wires["chat"].ask(t, m, false, "hi", 0); status != 200 {
		t.Fatal(status)
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/m:generateContent"} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader("no JSON")))
		if w.Code != 400 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if n := len(m.Requests()); n != 5 || strings.Count(log.String(), "\n") != 5 || !strings.Contains(log.String(), `"body":"no JSON"`) {
		t.Errorf("%d requests, log:\n%s", n, &log)
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/v1/models", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), "test-model") {
		t.Error(w.Code, w.Body)
	}
}

// TestToolsOfAgents has agents with different names for their tools and arguments.
func TestToolsOfAgents(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"shell", `{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]}`, `shell {"command":["bash","-lc",`},
		{"exec_command", `{"type":"object","properties":{"cmd":{"type":"string"},"yield_time_ms":{"type":"number"}},"required":["cmd"]}`, `exec_command {"cmd":"echo`},
		{"Bash", `{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"}},"required":["command","description"]}`, `"description":"as the test says"`},
		{"update_plan", `{"type":"object","properties":{"plan":{"type":"array","items":{"type":"object","properties":{"step":{"type":"string"},"status":{"type":"string"}}}}}}`, `update_plan {"plan":[{"status":"in_progress","step":"Write the file"}`},
		{"TaskCreate", `{"type":"object","properties":{"subject":{"type":"string"},"description":{"type":"string"}},"required":["subject","description"]}`, `TaskCreate {"description":"Write the file","subject":"Write the file"}`},
		{"write_todos", `{"type":"OBJECT","properties":{"todos":{"type":"ARRAY","items":{"type":"OBJECT","properties":{"description":{"type":"STRING"},"status":{"type":"STRING"}}}}}}`, `write_todos {"todos":[{"description":"Write the file","status":"in_progress"}`},
	} {
		body := fmt.Sprintf(`{"stream":true,"messages":[{"role":"user","content":"[tools]"}],"tools":[{"function":{"name":"BashOutput","parameters":{}}},{"function":{"name":%q,"parameters":%s}}]}`, tt.name, tt.schema)
		w := wires["chat"]
		w.body = func(bool, string, int) string { return body }
		got, _, err := w.ask(t, testmodel.New(testmodel.Options{}), true, "", 0)
		if err != nil || len(got.Calls) != 1 || !strings.Contains(got.Calls[0], tt.want) {
			t.Errorf("%s: %q, %v", tt.name, got.Calls, err)
		}
	}
}

func TestGeminiForm(t *testing.T) {
	w := wires["gemini"]
	w.body = func(bool, string, int) string {
		return `{"contents":[{"role":"user","parts":[{"text":"[tools]"}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":{
			"type":"OBJECT","properties":{"reasoning":{"type":"STRING"},"next_speaker":{"type":"STRING","enum":["user","model"]}}}}}`
	}
	got, _, err := w.ask(t, testmodel.New(testmodel.Options{}), false, "", 0)
	if want := `{"next_speaker":"user","reasoning":"as the test says"}`; err != nil || got.Text != want {
		t.Errorf("%q, %v", got.Text, err)
	}
}

// TestAsides checks that blocks which agents add to a message of the user do not count:
// neither as markers nor as messages.
func TestAsides(t *testing.T) {
	for text, want := range map[string]string{
		"<environment_context><cwd>[error 500]</cwd></environment_context>hi":    "number 2",
		"<system-reminder>[cut]</system-reminder>":                               "number 1",
		"<permissions instructions>[cut]</permissions instructions> hi":          "number 2",
		"<INSTRUCTIONS>x</INSTRUCTIONS><b>hi</b>":                                "number 2",
		"[CONVERSATION SO FAR]\n[error 500]\n[END OF CONVERSATION SO FAR]\n\nhi": "number 2",
		"<system-reminder> without an end":                                       "number 2",
	} {
		got, status, err := wires["chat"].ask(t, testmodel.New(testmodel.Options{}), true, text, 0)
		if err != nil || status != 200 || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %d %q, %v", text, status, got.Text, err)
		}
	}
}
