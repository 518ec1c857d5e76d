package agui_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/agui"
)

const (
	begun = `data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}` + "\n\n"
	ended = `data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}` + "\n\n"
)

// An agent may answer anything. The run fails with a sentence that says what is wrong,
// and has no secret.
func TestHostileAgents(t *testing.T) {
	const html, stream = "text/html", "text/event-stream"
	large := `data: {"type":"CUSTOM","name":"a","value":"` + strings.Repeat("x", 2<<20) + "\"}\n\n"
	for name, tt := range map[string]struct {
		status        int
		media, answer string
		want          string
	}{
		"HTML":                  {200, html, "<h1>hi", `the agent up answers with the content type "text/html", not with an event stream`},
		"nothing":               {200, stream, "", "the agent answers without any event"},
		"no type":               {200, "", "hi", "not with an event stream"},
		"comments":              {200, stream, ": hi\n\n: hi\n\n", "without any event"},
		"no JSON":               {200, stream, begun + "data: <p>\n\n", "what the agent sends is not AG-UI: an event of the agent is not a JSON object"},
		"half an event":         {200, stream, begun + `data: {"type":"TEXT_MES`, "is not a JSON object"},
		"half JSON":             {200, stream, begun + "data: {\"type\":\"CUSTOM\"\n\n", "is not a JSON object"},
		"no UTF-8":              {200, stream, begun + "data: {\"type\":\"CUSTOM\",\"name\":\"a\",\"value\":\"\xff\"}\n\n", "is not valid UTF-8"},
		"deep":                  {200, stream, begun + `data: {"type":"CUSTOM","name":"a","value":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + "}\n\n", "is nested more than"},
		"an array":              {200, stream, begun + "data: []\n\n", "is not a JSON object"},
		"no type of event":      {200, stream, begun + "data: {}\n\n", `has the type ""`},
		"no end":                {200, stream, begun, "the stream of the agent ended before its run did"},
		"no beginning":          {200, stream, ended, `the first event of the agent is "RUN_FINISHED", not RUN_STARTED`},
		"two beginnings":        {200, stream, begun + begun, "begins a second run in the same stream"},
		"an error":              {200, stream, begun + `data: {"type":"RUN_ERROR","message":"the disk is full"}` + "\n\n", "the agent has failed: the disk is full"},
		"an error at once":      {200, stream, `data: {"type":"RUN_ERROR","message":"no\u001b[31m"}` + "\n\n", "the agent has failed: no[31m"},
		"an error of odd form":  {200, stream, begun + `data: {"type":"RUN_ERROR","message":"the disk is full","code":5,"timestamp":"x"}` + "\n\n", "the agent has failed: the disk is full"},
		"an error of no reason": {200, stream, `data: {"type":"RUN_ERROR"}` + "\n\n", "the agent has failed without a reason"},
		"cancelled":             {200, stream, begun + `data: {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"}}` + "\n\n", "somebody else has cancelled the run of the agent"},
		"text of no message":    {200, stream, begun + `data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}` + "\n\n", `does not fit: text message "m" is not open`},
		"a message twice":       {200, stream, begun + strings.Repeat(`data: {"type":"TEXT_MESSAGE_START","messageId":"m"}`+"\n\n", 2), `does not fit: text message "m" is already open`},
		"a delta of no text":    {200, stream, begun + `data: {"type":"STATE_DELTA","delta":{}}` + "\n\n", "does not fit: delta in the"},
		"a large event":         {200, stream, begun + large, "the connection to the agent broke before its run had ended: an event of the stream is too large"},
		"no questions":          {200, stream, begun + `data: {"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[]}}` + "\n\n", "an interrupt without interrupts"},
		"questions of one id":   {200, stream, begun + `data: {"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"a","reason":"x"},{"id":"a","reason":"x"}]}}` + "\n\n", "have no ids of their own"},
		"401":                   {401, html, "<h1>no", "the agent up does not accept the credentials (status 401)"},
		"404":                   {404, html, "<h1>no", "the agent up refuses the request with the status 404"},
		"422":                   {422, "application/json", `{"detail":[{"msg":"Field required","loc":["body"]}]}`, "with the status 422: Field required"},
		"409":                   {409, "application/json", `{"error":{"message":"thread t is busy"}}`, "with the status 409: thread t is busy"},
		"503":                   {503, "", "", "with the status 503"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, events, err := run(t, runnerOf(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", tt.media)
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, tt.answer)
				})), tapedeck.Invocation{Task: "hi"})
				if tapedeck.KindOf(err) != tapedeck.Unavailable || !strings.Contains(fmt.Sprint(err), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if s := fmt.Sprint(err); strings.Contains(s, "secret") || strings.Contains(s, "hidden") || len(s) > 1000 {
					t.Errorf("the error is %s", s)
				}
				for _, e := range events {
					if e.Type != tapedeck.AgentLinked && e.Type != tapedeck.TextMessageStart {
						t.Errorf("there is a %s", e.Type)
					}
				}
			})
		})
	}
}

// A redirect is not followed: another server would get the headers.
func TestRedirect(t *testing.T) {
	hosts := ""
	_, _, err := run(t, runnerOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hosts += r.URL.Host + " "; len(hosts) > 100 {
			return
		}
		http.Redirect(w, r, "http://evil.invalid/run", http.StatusTemporaryRedirect)
	})), tapedeck.Invocation{Task: "hi"})
	if hosts != "agent.invalid " || !strings.Contains(fmt.Sprint(err), `redirects to "http://evil.invalid/run"`) {
		t.Errorf("%s were asked; %v", hosts, err)
	}
}

// Types that mean something in the log are not an agent's to send.
func TestForeignTypes(t *testing.T) {
	lines := ""
	for _, typ := range []string{"permission.answered", "session.closed", "agent.linked", "RUN_PAUSED", "a b", "META"} {
		lines += fmt.Sprintf("data: {\"type\":%q,\"name\":\"x\"}\n\n", typ)
	}
	_, events, err := run(t, runnerOf(answering(begun+lines+ended)), tapedeck.Invocation{Task: "hi"})
	got := ""
	for _, e := range events[1:] {
		got += e.Type + " "
	}
	if err != nil || got != "RAW RAW RAW RAW RAW META " || !strings.Contains(string(events[1].Data), `"type":"permission.answered"`) {
		t.Errorf("got %s, %v", got, err)
	}
}

func answering(stream string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	})
}

// A request that nobody has accepted is sent again, with the same ids. One that was
// accepted is not.
func TestRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		bad      http.HandlerFunc
		requests int
		want     string
	}{
		"unavailable": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, 2, "<nil>"},
		"refused":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 1, "the connection to the agent broke"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begun)
			panic(http.ErrAbortHandler)
		}, 1, "the connection to the agent broke before its run had ended"},
		"old": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) }, 2, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			var bodies []string
			r := runnerOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(body))
				w.Header().Set("Content-Type", "text/event-stream")
				if len(bodies) == 1 {
					tt.bad(w, r)
					return
				}
				_, _ = io.WriteString(w, begun+ended)
			}))
			_, _, err := run(t, r, tapedeck.Invocation{Task: "hi"})
			if len(bodies) != tt.requests || !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Fatalf("%d requests, %v", len(bodies), err)
			}
			again := strings.Replace(bodies[0], `,"protocolVersion":"1.0"`, "", 1)
			if name != "old" {
				again = bodies[0]
			}
			if tt.requests == 2 && bodies[1] != again {
				t.Errorf("the second request is %s", bodies[1])
			}
			if _, _, err := run(t, r, tapedeck.Invocation{Task: "hi"}); err != nil || strings.Contains(bodies[len(bodies)-1], "protocolVersion") != (name != "old") {
				t.Errorf("the next run sends %s, %v", bodies[len(bodies)-1], err)
			}
		})
	}
}

// A server that does not run is an error, after a few attempts.
func TestNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := agui.New(agui.Options{Name: "none", URL: "http://agent.invalid/?key=hidden", HTTP: roundTripper(func(*http.Request) (*http.Response, error) {
			n++
			return nil, io.ErrClosedPipe
		})})
		begin := time.Now()
		_, _, err := run(t, r, tapedeck.Invocation{Task: "hi"})
		if s := fmt.Sprint(err); n != 3 || s != "the agent none cannot be reached: io: read/write on closed pipe" || time.Since(begin) != 3*time.Second {
			t.Errorf("%d attempts in %v, %s", n, time.Since(begin), s)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An agent that never ends is held back by a slow reader, and does not fill the memory.
func TestEndlessAgent(t *testing.T) {
	piece := `data: {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"` + strings.Repeat("x", 64<<10) + "\"}\n\n"
	sent := 0
	r := runnerOf(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, begun)
		for {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
			sent++
		}
	}))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for range r.Run(t.Context(), tapedeck.Invocation{ID: "inv_1", Session: "s", Task: "hi"}) {
		if n++; n == 5000 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			break
		}
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 160<<20 || sent > n+2 {
		t.Errorf("after %d events of 64 KiB the heap has %d bytes more, and the agent has sent %d", n, grown, sent)
	}
}

// An agent that repeats what the request had of secrets does not bring it into the log.
func TestSecretsInErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		said := r.Header.Get("Authorization") + " " + r.URL.RawQuery + " " + r.Header.Get("X-Key")
		_ = json.NewEncoder(w).Encode(map[string]string{"message": said})
	}))
	defer server.Close()
	r := agui.New(agui.Options{
		Name: "up", URL: strings.Replace(server.URL, "://", "://ada:hunter-22@", 1) + "/x?key=s3cretkey", Header: map[string]string{"X-Key": "another-one"},
	})
	for _, err := range r.Run(t.Context(), tapedeck.Invocation{ID: "i", Session: "s", Task: "hi"}) {
		if err != nil && !strings.HasSuffix(err.Error(), ": Basic … key=… …") {
			t.Errorf("got %v", err)
		}
	}
}

// TestSecretsAtTheCut: where an error cuts what the agent says, no beginning of a secret stays.
func TestSecretsAtTheCut(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, said string){
		"a refusal": func(w http.ResponseWriter, said string) {
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": said})
		},
		"a redirect": func(w http.ResponseWriter, said string) {
			w.Header().Set("Location", said)
			w.WriteHeader(http.StatusFound)
		},
		"a content type": func(w http.ResponseWriter, said string) { w.Header().Set("Content-Type", said) },
		"the type of an event": func(w http.ResponseWriter, said string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: {\"type\":%q}\n\n", said)
		},
		"the end of a run": func(w http.ResponseWriter, said string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: {\"type\":\"RUN_ERROR\",\"message\":%q}\n\n", said)
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer(w, strings.Repeat("z", 294)+r.Header.Get("X-Key"))
		}))
		r := agui.New(agui.Options{Name: "up", URL: server.URL, Header: map[string]string{"X-Key": "s3cretkey"}})
		for _, err := range r.Run(t.Context(), tapedeck.Invocation{ID: "i", Session: "s", Task: "hi"}) {
			if err != nil && strings.Contains(err.Error(), "s3cr") {
				t.Errorf("%s: %v", name, err)
			}
		}
		server.Close()
	}
}
