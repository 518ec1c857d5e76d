package agui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// maxAttempts is how often a request is sent that no server has accepted.
const maxAttempts = 3

// maxRefusal is how many bytes of the body of a refusal are read.
const maxRefusal = 8 << 10

// An input is a RunAgentInput. Servers of earlier versions refuse members that they do
// not know, and inputs without one of the first seven, so these are always sent.
type input struct {
	ThreadID        string            `json:"threadId"`
	RunID           string            `json:"runId"`
	State           json.RawMessage   `json:"state"`
	Messages        []payload.Message `json:"messages"`
	Tools           json.RawMessage   `json:"tools"`
	Context         json.RawMessage   `json:"context"`
	ForwardedProps  json.RawMessage   `json:"forwardedProps"`
	ProtocolVersion string            `json:"protocolVersion,omitempty"`
	Resume          []entry           `json:"resume,omitempty"`
}

// input returns the input of the next request.
func (t *turn) input(resume []entry) input {
	var given payload.RunInput
	_ = json.Unmarshal(t.in.Input, &given) // nil for a task of another client
	in := input{
		ThreadID: t.thread, RunID: t.runID, Messages: t.mem.sent(), Resume: resume, ProtocolVersion: "1.0",
		State: or(or(given.State, t.mem.state()), []byte("{}")), Tools: or(given.Tools, []byte("[]")), Context: or(given.Context, []byte("[]")),
		ForwardedProps: or(or(given.ForwardedProps, t.in.Config), []byte("{}")),
	}
	if t.rounds > 0 { // the agent may have changed it
		in.State = or(t.mem.state(), in.State)
	}
	if t.replies {
		in.Messages = without(in.Messages, t.mem.taskID()) // it is in the answers
	}
	if in.Messages == nil {
		in.Messages = []payload.Message{}
	}
	return in
}

func or(raw, other json.RawMessage) json.RawMessage {
	if jsonobj.IsNull(raw) {
		raw = nil
	}
	if raw == nil {
		return other
	}
	return raw
}

func without(list []payload.Message, id string) []payload.Message {
	out := make([]payload.Message, 0, len(list))
	for _, m := range list {
		if m.ID != id {
			out = append(out, m)
		}
	}
	return out
}

// request sends an input until a server accepts it. A request that a server has
// accepted is never repeated: the agent would do its work twice.
func (t *turn) request(ctx context.Context, in *input) (*http.Response, error) {
	if t.runner.legacy.Load() {
		in.ProtocolVersion = ""
	}
	for attempt := 1; ; attempt++ {
		resp, err := t.post(ctx, in)
		switch {
		case err != nil:
			err = tapedeck.Errorf(tapedeck.Unavailable, "the agent %s cannot be reached: %s", t.runner.options.Name, narrate.Unreached(err, t.runner.secrets)).Because(err)
		case resp.StatusCode == http.StatusOK:
			if in.ProtocolVersion == "" {
				t.runner.legacy.Store(true)
			}
			return resp, nil
		case in.ProtocolVersion != "" && (resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity):
			_ = resp.Body.Close()
			in.ProtocolVersion, attempt = "", attempt-1 // maybe it does not know this member
			continue
		default:
			err = t.refusal(resp)
			if !mayRepeat(resp.StatusCode) {
				return nil, err
			}
		}
		if attempt == maxAttempts || !wait(ctx, t.runner.options.Retry<<(attempt-1)) {
			return nil, err
		}
	}
}

// mayRepeat reports whether a status means that nobody has accepted the request.
func mayRepeat(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func (t *turn) post(ctx context.Context, in *input) (*http.Response, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return t.send(ctx, t.runner.options.URL, body)
}

// send sends a request with the configured headers.
func (t *turn) send(ctx context.Context, address string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for name, value := range t.runner.options.Header {
		r.Header.Set(name, value)
	}
	return t.runner.client.Do(r)
}

// refusal returns the error of an answer that is not a stream, and closes it.
func (t *turn) refusal(resp *http.Response) error {
	defer resp.Body.Close()
	name, status := t.runner.options.Name, resp.StatusCode
	switch {
	case status >= 300 && status < 400:
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent %s redirects to %q; set its url to that address", name, narrate.Brief(resp.Header.Get("Location"), t.runner.secrets))
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent %s does not accept the credentials (status %d); set headers in its configuration", name, status)
	}
	said := ""
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what was read before an error is enough
	if s := sentence(body); s != "" {
		said = ": " + narrate.Brief(s, t.runner.secrets)
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the agent %s refuses the request with the status %d%s", name, status, said)
}

// sentence returns what the JSON of a refusal says, "" if it is not known where.
func sentence(body []byte) string {
	if !json.Valid(body) {
		return ""
	}
	for _, pointer := range []string{"/error/message", "/message", "/detail/0/msg", "/detail", "/error"} {
		var s string
		if json.Unmarshal(narrate.Pointer(body, pointer), &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// checkStream returns an error if an answer is not an event stream.
func (t *turn) checkStream(resp *http.Response) error {
	given := resp.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(given); err == nil && media == "text/event-stream" {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the agent %s answers with the content type %q, not with an event stream; check its url",
		t.runner.options.Name, cmp.Or(narrate.Brief(given, t.runner.secrets), "none"))
}

// abandon tells another Tapedeck to stop the run if it is still open: a Tapedeck stops
// no run when its client disconnects. Its answer does not matter.
func (t *turn) abandon(ctx context.Context) {
	if !t.ours || !t.open {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.runner.options.Stop)
	defer cancel()
	address, query, _ := strings.Cut(t.runner.options.URL, "?")
	address = strings.TrimSuffix(address, "/") + "/stop/" + url.PathEscape(t.thread)
	if query != "" {
		address += "?" + query
	}
	body, err := json.Marshal(map[string]string{"runId": t.runID})
	if err != nil {
		return
	}
	if resp, err := t.send(ctx, address, body); err == nil {
		_ = resp.Body.Close()
	}
}

// wait waits for a time. It reports false if ctx is done before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
