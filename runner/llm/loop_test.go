package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm"
	"github.com/tapedeck/tapedeck/runner/llm/mcp"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// summary describes a run in short: said "x", called n, answered n "x", failed n "x",
// asked n, and the error.
func summary(events []tapedeck.Event, err error) string {
	var lines []string
	text, names := "", map[string]string{}
	for _, e := range events {
		var d struct {
			Delta, ToolCallID, ToolCallName string
			Content                         json.RawMessage
			Metadata                        struct{ Tapedeck struct{ Error bool } }
		}
		_ = json.Unmarshal(e.Data, &d)
		switch e.Type {
		case tapedeck.TextMessageContent:
			text += d.Delta
		case tapedeck.TextMessageEnd:
			lines = append(lines, "said "+text)
			text = ""
		case tapedeck.ToolCallStart:
			names[d.ToolCallID] = d.ToolCallName
		case tapedeck.ToolCallResult:
			verb, result := "answered", ""
			if d.Metadata.Tapedeck.Error {
				verb = "failed"
			}
			_ = json.Unmarshal(d.Content, &result)
			lines = append(lines, fmt.Sprintf("%s %s: %s", verb, names[d.ToolCallID], result))
		case tapedeck.PlanUpdated:
			lines = append(lines, "planned")
		case tapedeck.AttemptSuperseded:
			lines = append(lines, "began "+text, "again")
			text = ""
		}
	}
	if text != "" {
		lines = append(lines, "began "+text)
	}
	if err != nil {
		lines = append(lines, "error "+err.Error())
	}
	return strings.Join(lines, "\n")
}

// echo returns a tool that needs a permission.
var echo = tool.Tool{Name: "echo", Parameters: json.RawMessage(`{"type":"object"}`), Run: func(_ context.Context, c tool.Call) tool.Result {
	return tool.Result{Text: string(c.Arguments)}
}}

func TestPermissions(t *testing.T) {
	twice := `[tool echo {"n":1}] [tool echo {"n":2}]`
	choose := func(option string) func(context.Context, tapedeck.Question) (tapedeck.Choice, error) {
		return func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
			return tapedeck.Choice{ID: q.ID, Option: option}, nil
		}
	}
	const last = "\nsaid Now I call echo.\n%s\nsaid Done after 2 tool results."
	both := func(verb, first, second string) string {
		return "said Now I call echo.\n" + verb + " echo: " + first + fmt.Sprintf(last, verb+" echo: "+second)
	}
	for _, tt := range []struct {
		name   string
		policy llm.Policy
		ask    func(context.Context, tapedeck.Question) (tapedeck.Choice, error)
		asked  int
		want   string
	}{
		{"each time", nil, choose("allow_once"), 2, both("answered", `{"n":1}`, `{"n":2}`)},
		{"for the rest of the run", nil, choose("allow_always"), 1, both("answered", `{"n":1}`, `{"n":2}`)},
		{"no", nil, choose("reject_once"), 2, both("failed", "The user does not allow this.", "The user does not allow this.")},
		{"no people to ask", nil, nil, 0, both("failed", "echo needs a permission, and nobody can be asked here, so it is not allowed.", "echo needs a permission, and nobody can be asked here, so it is not allowed.")},
		{"nobody answers", nil, choose(""), 1, "said Now I call echo.\nfailed echo: Nobody answered the permission request, so this was not done.\nerror nobody answered whether the agent may call echo, so it has stopped"},
		{"the question fails", nil, func(context.Context, tapedeck.Question) (tapedeck.Choice, error) {
			return tapedeck.Choice{}, tapedeck.Errorf(tapedeck.Unavailable, "no disk")
		}, 1, "said Now I call echo.\nerror no disk"},
		{"allowed by policy", llm.Policy{{"ec*", llm.Allow}, {"*", llm.Deny}}, nil, 0, both("answered", `{"n":1}`, `{"n":2}`)},
		{"denied by policy", llm.Policy{{"todo_write", llm.Allow}, {"*", llm.Deny}}, choose("allow_once"), 0, both("failed", "There is no tool echo. There are: todo_write.", "There is no tool echo. There are: todo_write.")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, in, asked := newWorld(), task(twice), 0
			w.options.Tools, w.options.Policy = []tool.Tool{echo}, tt.policy
			if tt.ask != nil {
				in.Ask = func(ctx context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
					asked++
					if q.ToolCallID == "" || len(q.Options) != 3 || q.Message != "May the agent call echo?" ||
						q.Action == nil || !strings.Contains(q.Action.Arguments, `"n": `) {
						t.Errorf("%+v", q)
					}
					return tt.ask(ctx, q)
				}
			}
			if got := summary(collect(t.Context(), w.runner(), in)); got != tt.want || asked != tt.asked {
				t.Errorf("asked %d times, want %d\n%s\nwant\n%s", asked, tt.asked, got, tt.want)
			}
		})
	}
}

func TestRuns(t *testing.T) {
	const hello = "said Hello! This is answer number 1."
	for _, tt := range []struct {
		name, task, config string
		change             func(*llm.Options)
		want               string
	}{
		{"a greeting", "hi", `{"model":"other","system":"x","max_turns":1}`, nil, hello},
		{"busy twice", "[error 429]", "", nil, hello},
		{"broken", "[error 500]", "", nil, "error the model's provider answered 500: the script says 500"},
		{"not repeated", "[error 503]", "", func(o *llm.Options) { o.Retries = -1 }, "error the model's provider answered 503: the script says 503"},
		{"cut", "[cut]", "", func(o *llm.Options) { o.Retries = -1 }, "began Hello! This is \nerror the model's answer broke off in the middle"},
		{"cut each time", "[cut]", "", func(o *llm.Options) { o.Retries = 1 }, "began Hello! This is \nagain\nbegan Hello! This is \nerror the model's answer broke off in the middle"},
		{"cut once", "[cut once]", "", nil, "began Hello! This is \nagain\n" + hello},
		{"cut before a call", `[cut once] [tool nope {}]`, "", nil, "began Now I \nagain\nsaid Now I call nope.\nfailed nope: There is no tool nope. There are: todo_write.\nsaid Done after 1 tool results."},
		{"a plan", `[tool todo_write {"todos":[{"content":"a","status":"pending"}]}]`, "", nil, "said Now I call todo_write.\nplanned\nanswered todo_write: The list is stored: 1 to do, 0 done.\nsaid Done after 1 tool results."},
		{"no such tool", `[tool nope {}]`, "", nil, "said Now I call nope.\nfailed nope: There is no tool nope. There are: todo_write.\nsaid Done after 1 tool results."},
		{"without a folder", `[tool read_file {"path":"x"}]`, "", nil, "said Now I call read_file.\nfailed read_file: There is no tool read_file. There are: todo_write.\nsaid Done after 1 tool results."},
		{"too many turns", `[tool a {}] [tool b {}] [tool c {}]`, `{"max_turns":2}`, nil, "said Now I call a.\nfailed a: There is no tool a. There are: todo_write.\nsaid Now I call b.\nfailed b: There is no tool b. There are: todo_write.\nerror the agent has called its model 2 times and has not finished"},
		{"max_turns above the limit", `[tool a {}] [tool b {}]`, `{"max_turns":9}`, func(o *llm.Options) { o.MaxTurns = 1 }, "said Now I call a.\nfailed a: There is no tool a. There are: todo_write.\nerror the agent has called its model 1 times and has not finished"},
		{"invalid config", "hi", `{"modell":"x"}`, nil, `error the config has the member "modell", which the agent does not know`},
		{"negative max_turns", "hi", `{"max_turns":-1}`, nil, "error max_turns is -1, but it must be above 0"},
		{"no base URL", "hi", "", func(o *llm.Options) { o.BaseURL = "" }, "error the base URL of the model is not set"},
		{"not an HTTP URL", "hi", "", func(o *llm.Options) { o.BaseURL = "localhost:80" }, "error the base URL of the model is not an HTTP URL"},
		{"no model", "hi", "", func(o *llm.Options) { o.Model = "" }, "error no model is configured"},
		{"an invalid pattern", "hi", "", func(o *llm.Options) { o.Policy = llm.Policy{{"[", llm.Allow}} }, `error the policy has "[", which is not a valid pattern`},
		{"an unknown decision", "hi", "", func(o *llm.Options) { o.Policy = llm.Policy{{"*", "maybe"}} }, `error the policy has the decision "maybe" for *`},
		{"an invalid server", "hi", "", func(o *llm.Options) { o.Servers = []mcp.Server{{Name: "x"}} }, "error cannot connect to the MCP server x: it has neither a command nor a URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, in := newWorld(), task(tt.task)
				if tt.change != nil {
					tt.change(&w.options)
				}
				if tt.config != "" {
					in.Config = json.RawMessage(tt.config)
				}
				events, err := collect(t.Context(), w.runner(), in)
				if got := summary(events, err); got != tt.want {
					t.Errorf("%s\nwant\n%s", got, tt.want)
				}
			})
		})
	}
}

// What users send during the run reaches the model before its next call, and after its
// last answer.
func TestSteer(t *testing.T) {
	w, in := newWorld(), task(`[tool nope {}]`)
	asked := 0
	in.Steer = func(context.Context) ([]json.RawMessage, error) {
		asked++
		switch asked {
		case 2: // before the second call
			return []json.RawMessage{json.RawMessage(`{"id":"s1","role":"user","content":"faster"}`)}, nil
		case 3: // after the second answer
			return []json.RawMessage{json.RawMessage(`{"id":"s2","role":"user","content":"hi"}`)}, nil
		}
		return nil, nil
	}
	events, err := collect(t.Context(), w.runner(), in)
	got := summary(events, err)
	if n := strings.Count(got, "said "); n != 3 || err != nil || asked != 5 {
		t.Errorf("%d answers, asked %d times, %v: %s", n, asked, err, got)
	}
	in.Steer = func(context.Context) ([]json.RawMessage, error) {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "no disk")
	}
	if _, err := collect(t.Context(), w.runner(), in); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("the run ends with %v", err)
	}
}

func TestMissingFolder(t *testing.T) {
	in := task("hi")
	in.Folder = "/does/not/exist"
	if events, err := collect(t.Context(), newWorld().runner(), in); tapedeck.KindOf(err) != tapedeck.Unavailable || len(events) > 0 {
		t.Errorf("%v, %d events", err, len(events))
	}
}

// A scripted model answers request n, counted from 1, with a stream.
type scripted struct {
	answer func(n int) string
	n      int
}

func (s *scripted) RoundTrip(*http.Request) (*http.Response, error) {
	s.n++
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(s.answer(s.n)))}, nil
}

func calling(finish, call string) string {
	return `data: {"choices":[{"delta":{"tool_calls":[` + call + `]},"finish_reason":"` + finish + "\"}]}\n\ndata: [DONE]\n\n"
}

// TestOddAnswers has mistakes of models.
func TestOddAnswers(t *testing.T) {
	const done = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n"
	for _, tt := range []struct{ name, answer, want string }{
		{"arguments that are cut off", calling("length", `{"index":0,"id":"c","function":{"name":"echo","arguments":"{\"a\":"}}`), "failed echo: The arguments are not a JSON object.\nsaid ok"},
		{"arguments that are a list", calling("tool_calls", `{"index":0,"id":"c","function":{"name":"echo","arguments":"[1]"}}`), "failed echo: The arguments are not a JSON object.\nsaid ok"},
		{"no arguments", calling("stop", `{"index":0,"id":"c","function":{"name":"echo"}}`), "answered echo: {}\nsaid ok"},
		{"no name", calling("stop", `{"index":0,"id":"c","function":{"arguments":"{}"}}`), "failed unknown: There is no tool unknown. There are: todo_write, echo.\nsaid ok"},
		{"a late name", calling("stop", `{"index":0,"id":"a","function":{"arguments":"{}"}},{"index":1,"id":"b","function":{"name":"echo","arguments":"{\"a\":2}"}},{"index":0,"function":{"name":"echo"}}`), "answered echo: {\"a\":2}\nanswered echo: {}\nsaid ok"},
		{"two calls with one id", calling("stop", `{"id":"c","index":0,"function":{"name":"echo","arguments":"{\"a\":1}"}},{"id":"c","index":1,"function":{"name":"echo","arguments":"{\"a\":2}"}}`), "answered echo: {\"a\":1}\nanswered echo: {\"a\":2}\nsaid ok"},
		{"thoughts in the middle", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"reasoning\":\"b\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"c\"}}]}\n\ndata: [DONE]\n\n", "said a\nsaid c"},
		{"text after a call", "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"echo\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n", "said a\nanswered echo: {}\nsaid ok"},
		{"too long", "data: {\"choices\":[{\"delta\":{\"content\":\"half\"},\"finish_reason\":\"length\"}]}\n\n", "said half\nerror the model has reached its token limit for one answer"},
		{"filtered", "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n", "error the provider's content filter has stopped the answer"},
		{"a character in two pieces", `data: {"choices":[{"delta":{"content":"go \ud83d"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"\ude80 on"}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"echo","arguments":"{\"q\":\"\ud83d"}}]}}]}` + "\n\n" +
			calling("stop", `{"index":0,"function":{"arguments":"\ude80\"}"}}`), "said go 🚀 on\nanswered echo: {\"q\":\"🚀\"}\nsaid ok"},
		{"half a character", `data: {"choices":[{"delta":{"content":"go \ud83d"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", "said go \ufffd"},
		{"nothing", "data: [DONE]\n\n", "error the model has said nothing and called no tool; its server sent an empty answer"},
		{"no choices", `data: {"choices":[]}` + "\n\ndata: [DONE]\n\n", `error the model has said nothing and called no tool; its server sent {"choices":[]}`},
		{"only a reason", `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n", `error the model has said nothing and called no tool; its server sent {"choices":[{"delta":{},"finish_reason":"stop"}]}`},
		{"a number as the text", `data: {"choices":[{"delta":{"content":5},"finish_reason":"stop"}]}` + "\n\n", `error the model has said nothing and called no tool; its server sent {"choices":[{"delta":{"content":5},"finish_reason":"stop"}]}`},
		{"too long without a word", `data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n", "error the model has reached its token limit for one answer"},
		{"thoughts only", `data: {"choices":[{"delta":{"reasoning":"b"},"finish_reason":"stop"}]}` + "\n\n", ""},
		{"another interface", `data: {"type":"message_start","key":"a\u001b[2J"}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n", `error the model's server does not answer in the form of OpenAI's chat completions; it sends {"type":"message_start","key":"a\u001b[2J"}`},
		{"no answer", `data: {"hello":"world"}` + "\n\ndata: [DONE]\n\n", `error the model's server does not answer in the form of OpenAI's chat completions; it sends {"hello":"world"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.options.Tools, w.options.Policy = []tool.Tool{echo}, llm.Policy{{"*", llm.Allow}}
			w.options.HTTPClient = &http.Client{Transport: &scripted{answer: func(n int) string {
				if n == 1 {
					return tt.answer
				}
				return done
			}}}
			events, err := collect(t.Context(), w.runner(), task("go"))
			if got := summary(events, err); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
			v := order.NewVerifier()
			for _, e := range slices.Concat([]tapedeck.Event{{Type: tapedeck.RunStarted, Data: json.RawMessage(`{"threadId":"main","runId":"inv_1"}`)}}, events) {
				e.Invocation = "inv_1"
				if err := v.Add(&e); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestCancel cancels runs in different states: the run ends at once, and its text stays.
func TestCancel(t *testing.T) {
	wait := tool.Tool{Name: "wait", ReadOnly: true, Run: func(ctx context.Context, _ tool.Call) tool.Result {
		<-ctx.Done()
		return tool.Failed("half of it")
	}}
	for _, tt := range []struct{ name, task, want string }{
		{"in the middle of a text", "[slow]", "began word1 word2 word3 word4 word5 word6 word7 word8 word9 "},
		{"in the middle of a tool", "[parallel] [tool wait {}] [tool wait {}]", "said Now I call wait.\nfailed wait: half of it"},
		{"while a question is open", "[tool echo {}]", "said Now I call echo."},
		{"between two attempts", "[error 429]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, in := newWorld(), task(tt.task)
				w.options.Tools = []tool.Tool{wait, echo}
				in.Ask = func(ctx context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
					<-ctx.Done()
					return tapedeck.Choice{ID: q.ID, Outcome: "cancelled"}, nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), 950*time.Millisecond)
				defer cancel()
				begin := time.Now()
				if got := summary(collect(ctx, w.runner(), in)); got != tt.want {
					t.Errorf("%s\nwant\n%s", got, tt.want)
				}
				if took := time.Since(begin); took != 950*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestBreakDuringATool checks that a running tool is stopped when no more events are wanted.
func TestBreakDuringATool(t *testing.T) {
	w := newWorld()
	w.options.Tools = []tool.Tool{{Name: "t", ReadOnly: true, Run: func(ctx context.Context, c tool.Call) tool.Result {
		if c.Started(payload.AgentStarted{PID: 1, Started: "1", Host: "h"}) == nil {
			t.Error("the process may begin although the run has ended")
		}
		<-ctx.Done()
		return tool.Result{}
	}}}
	for e, err := range w.runner().Run(t.Context(), task("[tool t {}]")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == tapedeck.AgentStarted {
			break
		}
	}
}

// TestRepeatedCallIDs has a provider that uses the same call ids in each answer. In the log each
// call has an id of its own.
func TestRepeatedCallIDs(t *testing.T) {
	w := newWorld()
	w.options.Tools, w.options.Policy = []tool.Tool{echo}, llm.Policy{{"*", llm.Allow}}
	var log []tapedeck.Event
	ids := map[string]bool{}
	for _, id := range []string{"inv_1", "inv_2"} {
		w.options.HTTPClient = &http.Client{Transport: &scripted{answer: func(n int) string {
			return []string{calling("stop", `{"id":"call_0","function":{"name":"echo","arguments":"{}"}}`), "data: [DONE]\n\n"}[(n-1)%2]
		}}}
		in := task("go")
		in.ID = id
		in.History = func(context.Context) iter.Seq2[tapedeck.Event, error] {
			return func(yield func(tapedeck.Event, error) bool) {
				for i, e := range log {
					if e.Offset = int64(i); !yield(e, nil) {
						return
					}
				}
			}
		}
		events, err := collect(t.Context(), w.runner(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			e.Invocation = id
			log = append(log, e)
			if d, err := payload.DecodeAs[payload.ToolCallStart](e); err == nil {
				ids[d.ToolCallID] = true
			}
		}
	}
	if len(ids) != 2 || !ids["call_0"] {
		t.Errorf("%v", ids)
	}
}

func TestCost(t *testing.T) {
	for _, tt := range []struct{ name, usage, want string }{
		{"by the price", `{"prompt_tokens":1000000,"completion_tokens":500000}`, "7"},
		{"cached for less", `{"prompt_tokens":1000000,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":500000}}`, "1.25"},
		{"as the provider says", `{"prompt_tokens":1000000,"completion_tokens":1,"cost":0.125}`, "0.125"},
		{"not known", `{"total_tokens":7}`, "<nil>"},
	} {
		w := newWorld()
		w.options.Prices = map[string]llm.Price{"test-model": {Input: 2, Output: 10, CachedInput: new(0.5)}}
		w.options.HTTPClient = &http.Client{Transport: fixed(`data: {"model":"test-model-2026","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":` + tt.usage + "}\n\n")}
		events, err := collect(t.Context(), w.runner(), task("go"))
		if err != nil || len(events) == 0 {
			t.Fatal(err, len(events))
		}
		d, err := payload.DecodeAs[payload.UsageReported](events[len(events)-1])
		if err != nil {
			t.Fatal(err)
		}
		got := "<nil>"
		if d.CostUSD != nil {
			got = fmt.Sprint(*d.CostUSD)
		}
		if got != tt.want || d.Provider != "test" || d.Model != "test-model-2026" {
			t.Errorf("%s: %s, want %s; %+v", tt.name, got, tt.want, d)
		}
	}
}

// TestCancelOverTheNetwork checks over a real connection that a cancel ends the
// request at the server.
func TestCancelOverTheNetwork(t *testing.T) {
	model, gone := testmodel.New(testmodel.Options{Pause: time.Hour}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"first\"}}]}\n\n")
		model.ServeHTTP(w, r)
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := llm.New(llm.Options{BaseURL: s.URL + "/v1", Model: "m"})
	for e, err := range r.Run(ctx, task("[slow]")) {
		if err != nil {
			t.Error(err)
		}
		if e.Type == tapedeck.TextMessageContent {
			cancel()
		}
	}
	<-gone
}
