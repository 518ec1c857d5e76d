// Package chat is a client of OpenAI's chat completions API. Most providers and local
// model servers speak it, each with small differences.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/secret"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A Client calls models of one provider.
type Client struct {
	BaseURL string            // such as "https://api.openai.com/v1"
	Key     string            // the bearer token; "" for no token
	Header  map[string]string // additional headers
	HTTP    *http.Client      // nil for a client that follows no redirects

	// Retries is how many times a failed call is repeated. A call is repeated only after a
	// temporary error: the server is busy, cannot be reached, or its answer broke off.
	Retries int
}

// A Request is one call to a model.
type Request struct {
	Model      string
	Messages   []view.ContextMessage
	Functions  []Function
	Parameters map[string]json.RawMessage // additional members of the request, such as temperature
}

// A Function is a function that the model can call.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON Schema
}

// Stream calls the model and yields its answer while it arrives. An error ends the
// sequence. Deltas before an error remain valid. If an answer breaks off, its deltas
// count until the next attempt begins, see [Again].
func (c *Client) Stream(ctx context.Context, r Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		secrets := secret.WordsOf(c.BaseURL, c.Header, c.Key)
		body, err := r.encode()
		if err != nil {
			yield(Delta{}, err)
			return
		}
		broken := "" // why the newest attempt that has said something broke off
		for attempt := 0; ; attempt++ {
			said, stopped, err := c.attempt(ctx, body, secrets, func(d Delta, err error) bool {
				if why := broken; why != "" {
					broken = ""
					if !yield(Delta{Kind: Again, Text: payload.Piece(why)}, nil) {
						return false
					}
				}
				return yield(d, err)
			})
			switch {
			case stopped || err == nil:
				return
			case ctx.Err() != nil:
				yield(Delta{}, ctx.Err())
				return
			}
			after, again := retryable(err, attempt)
			if !again || attempt >= c.Retries || !wait(ctx, after) {
				yield(Delta{}, secrets.HideIn(plain(err)))
				return
			}
			if said {
				broken = secrets.HideIn(plain(err)).Error()
			}
		}
	}
}

// encode returns the body of the request. Parameters cannot replace the members that the
// client sets itself. A parameter that is null removes its member; that is for
// stream_options, which some servers refuse.
func (r *Request) encode() ([]byte, error) {
	body := map[string]any{"stream_options": map[string]bool{"include_usage": true}}
	for name, value := range r.Parameters {
		if body[name] = value; !isSet(value) {
			delete(body, name)
		}
	}
	delete(body, "tools")
	body["model"], body["messages"], body["stream"] = r.Model, r.Messages, true
	if len(r.Functions) > 0 {
		tools := make([]any, len(r.Functions))
		for i, f := range r.Functions {
			tools[i] = map[string]any{"type": "function", "function": f}
		}
		body["tools"] = tools
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the request to the model cannot be encoded: %w", err)
	}
	return b, nil
}

// attempt calls the model once. said reports whether the answer has begun, and stopped
// whether the caller wants no more deltas.
func (c *Client) attempt(ctx context.Context, body []byte, secrets *secret.Words, yield func(Delta, error) bool) (said, stopped bool, err error) {
	// The cancel releases the connection even if the answer is not read to its end.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.post(ctx, body, secrets)
	if err != nil {
		return false, false, err
	}
	defer resp.Body.Close()
	for d, err := range deltas(resp, secrets) {
		if err != nil {
			return said, false, err
		}
		said = true
		if !yield(d, nil) {
			return said, true, nil
		}
	}
	return said, false, nil
}

func (c *Client) post(ctx context.Context, body []byte, secrets *secret.Words) (*http.Response, error) {
	address, err := url.JoinPath(c.BaseURL, "chat/completions") // before the query
	var req *http.Request
	if err == nil {
		req, err = http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	}
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the base URL of the model is not valid").Because(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for name, value := range c.Header {
		req.Header.Set(name, value)
	}
	client := c.HTTP
	if client == nil {
		client = direct
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, passing(tapedeck.Errorf(tapedeck.Unavailable, "the model at %s cannot be reached: %s", req.URL.Host, narrate.Unreached(err, secrets)).Because(err))
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp, secrets)
	}
	return resp, nil
}

// direct is a client that follows no redirects: the messages and the keys in headers are
// only for the configured server.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// deltas decodes an answer, which is streamed or complete: some servers do not stream if
// the request has tools.
func deltas(resp *http.Response, secrets *secret.Words) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		a := &assembler{yield: yield, secrets: secrets}
		a.media, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if a.media == "application/json" {
			a.whole(resp.Body)
			return
		}
		for data, err := range events(resp.Body) {
			switch {
			case errors.Is(err, errTooLarge):
				a.fail(err)
				return
			case err != nil && a.finished != "":
				a.end() // the answer is complete, so an error of the connection does not matter
				return
			case err != nil:
				a.fail(passing(brokenOff(err)))
				return
			case string(data) == "[DONE]":
				a.done = true
				a.end()
				return
			case !a.chunk(data):
				return
			}
		}
		a.end()
	}
}

// whole decodes an answer that is not streamed.
func (a *assembler) whole(r io.Reader) {
	data, err := io.ReadAll(io.LimitReader(r, maxEvent+1))
	switch {
	case err != nil:
		a.fail(passing(brokenOff(err)))
	case len(data) > maxEvent:
		a.fail(errTooLarge)
	case a.chunk(data):
		a.done = true
		a.end()
	}
}
