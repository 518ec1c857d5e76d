package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/a2a03"
	"github.com/tapedeck/tapedeck/internal/jsonrpc"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// A client sends requests to an agent. The one for version 1.0 is that of the SDK.
type client interface {
	SendStreamingMessage(ctx context.Context, in *sdk.SendMessageRequest) iter.Seq2[sdk.Event, error]
	SubscribeToTask(ctx context.Context, in *sdk.SubscribeToTaskRequest) iter.Seq2[sdk.Event, error]
	GetTask(ctx context.Context, in *sdk.GetTaskRequest) (*sdk.Task, error)
	CancelTask(ctx context.Context, in *sdk.CancelTaskRequest) (*sdk.Task, error)
}

// An oldClient is the client of version 0.3, over JSON-RPC.
type oldClient struct {
	url     string
	streams bool // the agent can stream
	http    *http.Client
}

// maxAnswer is the largest answer that is not a stream, in bytes.
const maxAnswer = 64 << 20

func (c *oldClient) SendStreamingMessage(ctx context.Context, in *sdk.SendMessageRequest) iter.Seq2[sdk.Event, error] {
	method := "message/send"
	if c.streams {
		method = "message/stream"
	}
	return c.stream(ctx, method, map[string]any{"message": a2a03.Of(in.Message, false)})
}

func (c *oldClient) SubscribeToTask(ctx context.Context, in *sdk.SubscribeToTaskRequest) iter.Seq2[sdk.Event, error] {
	return c.stream(ctx, "tasks/resubscribe", map[string]any{"id": in.ID})
}

func (c *oldClient) GetTask(ctx context.Context, in *sdk.GetTaskRequest) (*sdk.Task, error) {
	return c.task(ctx, "tasks/get", map[string]any{"id": in.ID})
}

func (c *oldClient) CancelTask(ctx context.Context, in *sdk.CancelTaskRequest) (*sdk.Task, error) {
	return c.task(ctx, "tasks/cancel", map[string]any{"id": in.ID})
}

// post sends a request and returns the answer, whose body the caller closes.
func (c *oldClient) post(ctx context.Context, method string, params any) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json")
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the server of the agent answers %s", answer.Status)
	}
	return answer, nil
}

// resultOf returns the result in an answer of JSON-RPC.
func resultOf(raw []byte) (sdk.Event, error) {
	var a struct {
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	if a.Error != nil {
		return nil, a.Error
	}
	return a2a03.Parse(a.Result)
}

func (c *oldClient) task(ctx context.Context, method string, params any) (*sdk.Task, error) {
	answer, err := c.post(ctx, method, params)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	e, err := readOne(answer.Body)
	if err != nil {
		return nil, err
	}
	t, ok := e.(*sdk.Task)
	if !ok {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the agent answers %s without a task", method)
	}
	return t, nil
}

// readOne reads an answer that is not a stream.
func readOne(r io.Reader) (sdk.Event, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxAnswer))
	if err != nil {
		return nil, err
	}
	return resultOf(raw)
}

// stream yields the events of a stream. An agent that does not stream answers with one
// task or message.
func (c *oldClient) stream(ctx context.Context, method string, params any) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		answer, err := c.post(ctx, method, params)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = answer.Body.Close() }() // it was only read
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
			yield(readOne(answer.Body))
			return
		}
		for f, err := range sse.Read(answer.Body) {
			var e sdk.Event
			if err == nil {
				e, err = resultOf(f.Data)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
