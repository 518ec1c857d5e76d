package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/llm/chat"
)

// stream returns a stream with the given deltas. The last argument is the whole last
// event.
func stream(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(`data: {"choices":[{"index":0,"delta":` + d + "}]}\n\n")
	}
	return b.String() + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
}

func calls(all ...wholeCall) map[int]*wholeCall {
	m := map[int]*wholeCall{}
	for i := range all {
		m[i] = &all[i]
	}
	return m
}

// TestQuirks has the differences between providers.
func TestQuirks(t *testing.T) {
	a, b := wholeCall{"1", "f", `{"a":1}`}, wholeCall{"2", "g", `{"b":2}`}
	for _, tt := range []struct {
		name, body string
		want       whole
	}{
		{"nothing between events, CR, comments, no space", "retry: 5\r\n: hello\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\r\nevent: x\r\ndata: [DONE]", whole{Text: "ab"}},
		{"a byte order mark", "\ufeff" + stream(`{"content":"a"}`, `{"content":"b"}`), whole{Text: "ab", Finish: "stop"}},
		{"lines that end with CR", strings.ReplaceAll(stream(`{"content":"a"}`, `{"content":"b"}`), "\n", "\r"), whole{Text: "ab", Finish: "stop"}},
		{"an event of several lines", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}", whole{Text: "a", Finish: "stop"}},
		{"both names of reasoning", stream(`{"reasoning":"a","reasoning_content":"a"}`, `{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b"}]}`), whole{Thought: "ab", Finish: "stop"}},
		{"only the details", stream(`{"reasoning_details":[{"type":"reasoning.text","text":"a"},{"summary":"b"},{"data":"x"}]}`), whole{Thought: "ab", Finish: "stop"}},
		{"parts", stream(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"}]}`), whole{Thought: "a", Text: "b", Finish: "stop"}},
		{"a refusal", stream(`{"content":null,"refusal":"no"}`), whole{Text: "no", Finish: "stop"}},
		{"another choice", `data: {"choices":[{"index":1,"delta":{"content":"x"}},{"index":0,"delta":{"content":"a"}}]}` + "\n\ndata: [DONE]\n\n", whole{Text: "a"}},
		{"calls that mix", stream(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\""}},{"index":1,"id":"2","function":{"name":"g","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":"\"b\":2}"}}]}`), whole{Calls: calls(a, b), Finish: "stop"}},
		{"whole calls without an index", stream(`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"2","function":{"name":"g","arguments":"{\"b\":2}"}}]}`), whole{Calls: calls(a, b), Finish: "stop"}},
		{"index 0 for all calls", stream(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}}]}`, `{"tool_calls":[{"index":0,"id":"2","function":{"name":"g","arguments":"{\"b\":2}"}}]}`), whole{Calls: calls(a, b), Finish: "stop"}},
		{"without ids", stream(`{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{\"a\":1}"}}]}`, `{"tool_calls":[{"id":"","function":{"name":"g","arguments":"{\"b\":2}"}}]}`),
			whole{Calls: calls(wholeCall{"", "f", `{"a":1}`}, wholeCall{"", "g", `{"b":2}`}), Finish: "stop"}},
		{"id and name each time", stream(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\""}}]}`, `{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":":1}"}}]}`), whole{Calls: calls(a), Finish: "stop"}},
		{"a late name", stream(`{"tool_calls":[{"index":0,"id":"1","function":{"arguments":"{\"a\""}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":":1}"}}]}`), whole{Calls: calls(a), Finish: "stop"}},
		{"arguments that are not text", stream(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":{"a":1}}}]}`), whole{Calls: calls(a), Finish: "stop"}},
		{"no name at all", stream(`{"tool_calls":[{"index":0,"id":"1","function":{"arguments":"{}"}}]}`), whole{Calls: calls(wholeCall{"1", "", "{}"}), Finish: "stop"}},
		{"repeated usage, reasoning beside the output", `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}` + "\n\n" +
			`data: {"choices":[],"usage":{"prompt_tokens":7.0,"completion_tokens":2,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":5}}}` + "\n\n",
			whole{Text: "a", Finish: "stop", Usage: map[string]int64{"input": 7, "output": 7}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := listen(t, streamed(tt.body))
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestWholeAnswer(t *testing.T) {
	got, err := listen(t, func(*http.Request) (*http.Response, error) {
		return respond(200, "Content-Type: application/json; charset=utf-8", `{"choices":[{"message":{"content":"a","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	})
	want := whole{Text: "a", Calls: calls(wholeCall{"1", "f", "{}"}), Finish: "tool_calls", Usage: map[string]int64{"input": 1, "output": 2}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestLargeEvents(t *testing.T) {
	long := strings.Repeat("x", 20<<20)
	got, err := listen(t, streamed(stream(`{"content":"`+long+`"}`)))
	if err != nil || got.Text != long {
		t.Errorf("%d bytes, %v", len(got.Text), err)
	}
	tries := 0
	_, err = listen(t, func(*http.Request) (*http.Response, error) {
		tries++
		return &http.Response{StatusCode: 200, Body: io.NopCloser(io.MultiReader(strings.NewReader("data: "), endless{}))}, nil
	})
	if tapedeck.KindOf(err) != tapedeck.TooLarge || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestRetries checks that calls are repeated after temporary errors only, that they wait as
// long as the server asks, and that an answer which begins again says so.
func TestRetries(t *testing.T) {
	broken := func(text string) answer {
		return func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(io.MultiReader(strings.NewReader(text), failing{}))}, nil
		}
	}
	status := func(code int, header string) answer {
		return func(*http.Request) (*http.Response, error) {
			return respond(code, header, `{"error":{"message":"oh dear\u001b[2J\n, sk-secret.","code":1}}`)
		}
	}
	typed := func(media, body string) answer {
		return func(*http.Request) (*http.Response, error) { return respond(200, "Content-Type: "+media, body) }
	}
	refused := answer(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	const said = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
	good := streamed(stream(`{"content":"ok"}`))
	for _, tt := range []struct {
		name         string
		answers      []answer // the last one is repeated
		tries        int
		least, most  time.Duration
		text, failed string
	}{
		{"busy for a while", []answer{status(429, ""), status(503, ""), good}, 3, 1500 * time.Millisecond, 1900 * time.Millisecond, "ok", ""},
		{"as long as it asks", []answer{status(429, "Retry-After: 20"), good}, 2, 20 * time.Second, 20 * time.Second, "ok", ""},
		{"until a date", []answer{status(503, "Retry-After: Sat, 01 Jan 2000 00:00:30 GMT"), good}, 2, 30 * time.Second, 30 * time.Second, "ok", ""},
		{"longer than the limit", []answer{status(429, "Retry-After: 3600"), good}, 1, 0, 0, "", "the model's provider answered 429: oh dear[2J , …"},
		{"busy for ever", []answer{status(500, "")}, 4, 3500 * time.Millisecond, 4400 * time.Millisecond, "", "the model's provider answered 500: oh dear[2J , …"},
		{"a request that is wrong", []answer{status(400, "")}, 1, 0, 0, "", "the model's provider answered 400: oh dear[2J , …"},
		{"a wrong key", []answer{status(401, "")}, 1, 0, 0, "", "the model's provider answered 401: oh dear[2J , …"},
		{"not reachable once", []answer{refused, good}, 2, 500 * time.Millisecond, 625 * time.Millisecond, "ok", ""},
		{"never reachable", []answer{refused}, 4, 3500 * time.Millisecond, 4400 * time.Millisecond, "", "the model at model cannot be reached: connection refused"},
		{"cut before the first word", []answer{broken(": hello\n\n"), good}, 2, 500 * time.Millisecond, 625 * time.Millisecond, "ok", ""},
		{"cut after the first word", []answer{broken(said), good}, 2, 500 * time.Millisecond, 625 * time.Millisecond, "a<the model's answer broke off in the middle>ok", ""},
		{"ended after the first word", []answer{streamed(said), good}, 2, 500 * time.Millisecond, 625 * time.Millisecond, "a<the model's answer broke off in the middle>ok", ""},
		{"cut twice, once without a word", []answer{broken(said), status(503, ""), good}, 3, 1500 * time.Millisecond, 1900 * time.Millisecond, "a<the model's answer broke off in the middle>ok", ""},
		{"cut after a word each time", []answer{broken(said)}, 4, 3500 * time.Millisecond, 4400 * time.Millisecond, "a<the model's answer broke off in the middle>a<the model's answer broke off in the middle>a<the model's answer broke off in the middle>a", "the model's answer broke off in the middle"},
		{"a temporary error in the stream", []answer{streamed("data: {\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}}\n\n"), good}, 2, 500 * time.Millisecond, 625 * time.Millisecond, "ok", ""},
		{"a permanent error in the stream", []answer{streamed("data: {\"error\":\"no\"}\n\n"), good}, 1, 0, 0, "", "the model's provider failed: no"},
		{"an error in the stream after a word", []answer{streamed(said + "data: {\"choices\":[{\"error\":{\"code\":502,\"message\":\"lost\"}}]}\n\n"), good}, 2, 500 * time.Millisecond, 625 * time.Millisecond, "a<the model's provider failed: lost>ok", ""},
		{"no JSON", []answer{streamed("data: oops\n\n")}, 1, 0, 0, "", "the model's server does not answer with an object of JSON; it sends oops"},
		{"a page", []answer{typed("text/html; charset=utf-8", "<html>sk-secret</html>")}, 1, 0, 0, "", "the model's server answers with the content type \"text/html\", not with a stream of events"},
		{"a page that is said to be JSON", []answer{typed("application/json", "<html>\n sk-secret</html>")}, 1, 0, 0, "", "the model's server does not answer with an object of JSON; it sends <html> …</html>"},
		{"a list", []answer{typed("application/json", "[]")}, 1, 0, 0, "", "the model's server does not answer with an object of JSON; it sends []"},
		{"an answer of another interface", []answer{typed("application/json", `{"type":"message","content":[{"type":"text","text":"sk-secret"}]}`)}, 1, 0, 0, "", `the model's server does not answer in the form of OpenAI's chat completions; it sends {"type":"message","content":[{"type":"text","text":"…"}]}`},
		{"an empty stream once", []answer{streamed(""), good}, 2, 500 * time.Millisecond, 625 * time.Millisecond, "ok", ""},
		{"an empty stream", []answer{streamed(": hello\n\n")}, 4, 3500 * time.Millisecond, 4400 * time.Millisecond, "", "the model's server sends an empty answer"},
		{"cut after the finish reason", []answer{broken(said + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")}, 1, 0, 0, "a", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, tries := time.Now(), 0
				got, err := listen(t, func(r *http.Request) (*http.Response, error) {
					tries++
					return tt.answers[min(tries, len(tt.answers))-1](r)
				})
				failed := ""
				if err != nil {
					failed = err.Error()
				}
				if failed != tt.failed || got.Text != tt.text || tries != tt.tries {
					t.Errorf("%q, %q after %d tries; want %q, %q after %d", got.Text, failed, tries, tt.text, tt.failed, tt.tries)
				}
				if took := time.Since(begin); took < tt.least || took > tt.most {
					t.Errorf("it took %v, want %v to %v", took, tt.least, tt.most)
				}
			})
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestCancelDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := chat.Client{BaseURL: "http://model", Retries: 9, HTTP: &http.Client{Transport: answer(func(*http.Request) (*http.Response, error) {
			return respond(429, "Retry-After: 60", "")
		})}}
		begin := time.Now()
		for _, err := range c.Stream(ctx, chat.Request{}) {
			if err == nil {
				t.Error("it said something")
			}
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestRequest(t *testing.T) {
	var path, auth, extra string
	var body map[string]any
	c := chat.Client{BaseURL: "http://model/v1/", Key: "k", Header: map[string]string{"X-Title": "t"}, HTTP: &http.Client{Transport: answer(func(r *http.Request) (*http.Response, error) {
		path, auth, extra = r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("X-Title")
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		return respond(200, "", stream(`{"content":"a"}`))
	})}}
	r := chat.Request{
		Model: "m", Functions: []chat.Function{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Parameters: map[string]json.RawMessage{"temperature": json.RawMessage("0.5"), "stream": json.RawMessage("false"), "stream_options": json.RawMessage("null")},
	}
	for _, err := range c.Stream(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]any{
		"model": "m", "messages": nil, "stream": true, "temperature": 0.5,
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "f", "parameters": map[string]any{"type": "object"}}}},
	}
	if diff := cmp.Diff(want, body); diff != "" || path != "/v1/chat/completions" || auth != "Bearer k" || extra != "t" {
		t.Error(path, auth, extra, diff)
	}
}

// FuzzStream checks that no input from a server causes a panic or a loss of text.
func FuzzStream(f *testing.F) {
	for _, s := range []string{stream(`{"content":"a"}`), stream(`{"tool_calls":[{"index":-1,"function":{"arguments":7}}]}`), "data: {\"choices\":7}", "data: {\"error\":{\"error\":{\"error\":1}}}\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c := chat.Client{BaseURL: "http://model", HTTP: &http.Client{Transport: streamed(body)}}
		ended, begun := false, map[int]bool{}
		for d, err := range c.Stream(t.Context(), chat.Request{}) {
			if ended {
				t.Error("it went on after its error")
			}
			ended = err != nil
			begun[d.Call] = begun[d.Call] || d.Kind == chat.CallBegin
			if d.Kind == chat.CallArgs && !begun[d.Call] || d.Kind == chat.Used && d.Usage == nil {
				t.Errorf("%+v", d)
			}
		}
	})
}

// TestRedirect checks that the target of a redirect gets neither messages nor keys.
func TestRedirect(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	c := chat.Client{BaseURL: s.URL, Key: "k"}
	for _, err := range c.Stream(t.Context(), chat.Request{}) {
		if err == nil || err.Error() != "the model's provider answered 307: Temporary Redirect" {
			t.Error(err)
		}
	}
	if asked {
		t.Error("it went there")
	}
}
