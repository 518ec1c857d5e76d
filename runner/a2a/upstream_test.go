package a2a_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/tapedeck/tapedeck/internal/a2a03"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/runner/a2a"
)

// An upstream is an agent of the server of the Go SDK. It does what the last line of a
// message says.
type upstream struct {
	cut  func()        // breaks all connections
	next chan struct{} // the task "break" continues when it receives

	mu        sync.Mutex
	asked     []asked
	cancelled []sdk.TaskID
}

// An asked is what the agent was asked, and where.
type asked struct {
	text, conversation string
	task               sdk.TaskID
}

func (u *upstream) ask(i int) asked {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked[i]
}

func (u *upstream) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		u.mu.Lock()
		u.asked = append(u.asked, asked{ec.Message.Parts[0].Text(), ec.ContextID, ec.TaskID})
		u.mu.Unlock()
		if ec.StoredTask == nil && !yield(sdk.NewSubmittedTask(ec, ec.Message), nil) {
			return
		}
		if !yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateWorking, nil), nil) {
			return
		}
		lines := strings.Split(ec.Message.Parts[0].Text(), "\n")
		u.obey(ctx, ec, lines[len(lines)-1], yield)
	}
}

func (u *upstream) obey(ctx context.Context, ec *a2asrv.ExecutorContext, line string, yield func(sdk.Event, error) bool) {
	say := func(role sdk.TaskState, parts ...*sdk.Part) bool {
		return yield(sdk.NewStatusUpdateEvent(ec, role, sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, parts...)), nil)
	}
	stream := func(words ...string) {
		id := sdk.ArtifactID("")
		for _, w := range words {
			e := sdk.NewArtifactUpdateEvent(ec, id, sdk.NewTextPart(w))
			if id == "" {
				e = sdk.NewArtifactEvent(ec, sdk.NewTextPart(w))
				id = e.Artifact.ID
			}
			if !yield(e, nil) {
				return
			}
		}
	}
	switch line {
	case "talk":
		stream("One ", "two ", "three")
		say(sdk.TaskStateCompleted, sdk.NewTextPart("One two three")) // many agents say it twice
	case "endless":
		stream("on ", "and ", "on")
		<-ctx.Done()
	case "fail":
		say(sdk.TaskStateFailed, sdk.NewTextPart("the disk is full"))
	case "tool":
		part := func(typ string, data map[string]any) *sdk.Part {
			p := sdk.NewDataPart(data)
			p.Metadata = map[string]any{"adk_type": typ}
			return p
		}
		say(sdk.TaskStateWorking, part("function_call", map[string]any{"id": "1", "name": "Read", "args": map[string]any{"file": "a"}}))
		say(sdk.TaskStateWorking, part("function_response", map[string]any{"id": "1", "name": "Read", "response": map[string]any{"result": "hello"}}))
		stream("done")
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCompleted, nil), nil)
	case "change": // an artifact that is replaced, and a message that grows
		art := func(more bool, text string) bool {
			e := sdk.NewArtifactUpdateEvent(ec, "art", sdk.NewTextPart(text))
			e.Append = more
			return yield(e, nil)
		}
		note := func(text string) bool {
			m := sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart(text))
			m.ID = "note"
			return yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateWorking, m), nil)
		}
		_ = art(false, "Three") && note("I look") && art(false, "Four") && art(true, " of five") && note("I look again") && note("Done") &&
			yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCompleted, nil), nil)
	case "parts": // messages in parts, then as a whole
		partial := func(text string) bool {
			m := sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart(text))
			m.Metadata = map[string]any{"adk_partial": true}
			return yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateWorking, m), nil)
		}
		_ = partial("By ") && partial("bus") && say(sdk.TaskStateWorking, sdk.NewTextPart("By bus or train")) &&
			partial("N") && partial("o") && say(sdk.TaskStateCompleted, sdk.NewTextPart("No"))
	case "break":
		stream("before ")
		<-u.next
		stream("after")
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCompleted, nil), nil)
	case "ask":
		say(sdk.TaskStateInputRequired, sdk.NewTextPart("Which one?"))
	default:
		say(sdk.TaskStateCompleted, sdk.NewTextPart("You said "+line))
	}
}

func (u *upstream) Cancel(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		u.mu.Lock()
		u.cancelled = append(u.cancelled, ec.TaskID)
		u.mu.Unlock()
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCanceled, nil), nil)
	}
}

// serve starts the server of an upstream agent and returns a runner for it.
func serve(t testing.TB, path string) (*upstream, *a2a.Runner) {
	t.Helper()
	u := &upstream{next: make(chan struct{})}
	s := httptest.NewServer(nil)
	t.Cleanup(s.Close)
	u.cut = s.CloseClientConnections
	s.Config.Handler = u.handler(s.URL)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return u, runnerOf(s.URL+path, transport)
}

// Paths of the agent: in version 1.0, in 0.3, and in 0.3 without streaming.
const modern, old, older = "/agent/", "/old", "/older/"

func runnerOf(url string, transport http.RoundTripper) *a2a.Runner {
	return a2a.New(a2a.Options{Name: "up", URL: url, Header: map[string]string{"Authorization": "Bearer secret"}, Retry: time.Millisecond, HTTP: transport})
}

// handler returns the server of the agent, which accepts only requests with a secret.
func (u *upstream) handler(url string) http.Handler {
	rpc := a2asrv.NewJSONRPCHandler(u.server())
	mux := http.NewServeMux()
	mux.Handle("/rpc", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		rpc.ServeHTTP(w, r)
	}))
	mux.Handle("/old/rpc", oldRPC(u.server()))
	for path, streaming := range map[string]bool{"/old": true, "/older": false} {
		mux.HandleFunc(path+a2asrv.WellKnownAgentCardPath, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"name":"up","url":%q,"protocolVersion":"0.3.0","capabilities":{"streaming":%t},"security":[{"x":[]}]}`, url+"/old/rpc", streaming)
		})
	}
	mux.Handle("/agent"+a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(&sdk.AgentCard{
		Name: "up", SupportedInterfaces: []*sdk.AgentInterface{sdk.NewAgentInterface(url+"/rpc", sdk.TransportProtocolJSONRPC)},
		Capabilities: sdk.AgentCapabilities{Streaming: true},
	}))
	return mux
}

func (u *upstream) server() a2asrv.RequestHandler { return a2asrv.NewHandler(u) }

// oldRPC serves version 0.3 of the protocol.
func oldRPC(h a2asrv.RequestHandler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Method string
			Params struct {
				ID      sdk.TaskID
				Message *a2a03.Message
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in := new(sdk.SendMessageRequest)
		if m := q.Params.Message; m != nil {
			in.Message, _ = m.ToV1()
		}
		frame := func(e sdk.Event, err error) []byte {
			answer := map[string]any{"jsonrpc": "2.0", "id": 1}
			if err != nil {
				answer["error"] = map[string]any{"code": -32004, "message": err.Error()}
			} else {
				answer["result"] = a2a03.Of(e, false)
			}
			b, _ := json.Marshal(answer)
			return b
		}
		one := func(e sdk.Event, err error) { _, _ = w.Write(frame(e, err)) }
		all := func(events iter.Seq2[sdk.Event, error]) {
			w.Header().Set("Content-Type", "text/event-stream")
			for e, err := range events {
				_, _ = w.Write(sse.AppendFrame(nil, "", "", frame(e, err)))
				w.(http.Flusher).Flush()
			}
		}
		switch q.Method {
		case "message/stream":
			all(h.SendStreamingMessage(r.Context(), in))
		case "message/send":
			e, err := h.SendMessage(r.Context(), in)
			one(e, err)
		case "tasks/resubscribe":
			all(h.SubscribeToTask(r.Context(), &sdk.SubscribeToTaskRequest{ID: q.Params.ID}))
		case "tasks/get":
			e, err := h.GetTask(r.Context(), &sdk.GetTaskRequest{ID: q.Params.ID})
			one(e, err)
		case "tasks/cancel":
			e, err := h.CancelTask(r.Context(), &sdk.CancelTaskRequest{ID: q.Params.ID})
			one(e, err)
		}
	})
}

// TestMain serves the agent if a test has started this process for that: what it leaves
// running is then not in the process of the runner.
func TestMain(m *testing.M) {
	if os.Getenv("DECK_TEST_UPSTREAM") == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + l.Addr().String())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }() // when the test ends
	panic(http.Serve(l, (&upstream{}).handler("http://"+l.Addr().String())))
}

// serveElsewhere starts the server in another process.
func serveElsewhere(t testing.TB, path string) *a2a.Runner {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DECK_TEST_UPSTREAM=1", "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return runnerOf(strings.TrimSpace(url)+path, &http.Transport{DisableKeepAlives: true})
}
