package chat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/runner/llm/chat"
)

// A whole is a complete answer, streamed or not.
type whole struct {
	Thought, Text string
	Calls         map[int]*wholeCall
	Usage         map[string]int64
	Finish        string
}

type wholeCall struct{ ID, Name, Args string }

// recordings returns streams of real providers, one chunk per line. The repository does
// not have them, because we may not publish them. The test names their folder.
func recordings(t *testing.T) []string {
	folder := os.Getenv("TAPEDECK_PROVIDER_STREAMS")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "..", "shared", "transcripts", "provider-streams")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Skip("there are no recorded streams here; TAPEDECK_PROVIDER_STREAMS names a folder of them")
	}
	return files
}

func TestRecordedStreams(t *testing.T) {
	tested := 0
	for _, file := range recordings(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text[:min(len(text), 4000)], []byte("chat.completion.chunk")) {
			continue // a stream of another API
		}
		tested++
		t.Run(filepath.Base(file), func(t *testing.T) {
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			want, wire := plainly(t, lines), "data: "+strings.Join(lines, "\n\ndata: ")+"\n\ndata: [DONE]\n\n"
			got, err := listen(t, streamed(wire))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if got.Text+got.Thought == "" && got.Calls == nil || got.Usage["output"] == 0 {
				t.Errorf("hardly anything was said: %+v", got)
			}
		})
	}
	if tested < 5 {
		t.Errorf("only %d recordings are of this interface", tested)
	}
}

// plainly decodes a stream as its documentation says, without any quirks.
func plainly(t *testing.T, lines []string) whole {
	var w whole
	for _, line := range lines {
		var c struct {
			Choices []struct {
				Delta struct {
					Content, Reasoning string
					ReasoningContent   string `json:"reasoning_content"`
					Calls              []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Usage *struct {
				Prompt int64 `json:"prompt_tokens"`
				Total  int64 `json:"total_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Usage != nil {
			w.Usage = map[string]int64{"input": c.Usage.Prompt, "output": c.Usage.Total - c.Usage.Prompt}
		}
		for _, x := range c.Choices {
			w.Text += x.Delta.Content
			w.Thought += x.Delta.ReasoningContent + x.Delta.Reasoning
			w.Finish += x.Finish
			for _, k := range x.Delta.Calls {
				w.call(k.Index, k.ID, k.Function.Name, k.Function.Arguments)
			}
		}
	}
	return w
}

func (w *whole) call(i int, id, name, args string) {
	if w.Calls == nil {
		w.Calls = map[int]*wholeCall{}
	}
	if w.Calls[i] == nil {
		w.Calls[i] = &wholeCall{}
	}
	w.Calls[i].ID += id
	w.Calls[i].Name += name
	w.Calls[i].Args += args
}

// An answer is a transport that answers every request with a function.
type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func respond(status int, header, body string) (*http.Response, error) {
	h := http.Header{}
	if name, value, ok := strings.Cut(header, ": "); ok {
		h.Set(name, value)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func streamed(body string) answer {
	return func(*http.Request) (*http.Response, error) {
		return respond(200, "Content-Type: text/event-stream", body)
	}
}

// listen calls the model and joins its deltas.
func listen(t *testing.T, a answer) (whole, error) {
	c := chat.Client{BaseURL: "http://model/v1", Key: "sk-secret", HTTP: &http.Client{Transport: a}, Retries: 3}
	var w whole
	for d, err := range c.Stream(t.Context(), chat.Request{Model: "m"}) {
		if err != nil {
			return w, err
		}
		switch d.Kind {
		case chat.Text:
			w.Text += d.Text.Whole()
		case chat.Reasoning:
			w.Thought += d.Text.Whole()
		case chat.CallBegin:
			if w.Calls[d.Call] != nil {
				return w, fmt.Errorf("call %d began twice", d.Call)
			}
			w.call(d.Call, d.ID, d.Name, "")
		case chat.CallArgs:
			w.call(d.Call, "", "", d.Text.Whole())
		case chat.Finish:
			w.Finish = d.Text.Whole()
		case chat.Again:
			w.Text += "<" + d.Text.Whole() + ">"
		case chat.Used:
			w.Usage = map[string]int64{"input": *d.Usage.InputTokens, "output": *d.Usage.OutputTokens}
		}
	}
	return w, nil
}
