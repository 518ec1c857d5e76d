package protocols

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
)

// A taskEvent is an event of the SSE task protocol.
type taskEvent struct {
	Type     string      `json:"type"`
	Sequence json.Number `json:"sequence"`
	Data     struct {
		Text      string          `json:"text"`
		FullText  string          `json:"full_text"`
		IsPartial bool            `json:"is_partial"`
		ToolName  string          `json:"tool_name"`
		ToolID    string          `json:"tool_id"`
		ToolInput json.RawMessage `json:"tool_input"`
		Result    string          `json:"result"`
	} `json:"data"`
}

// A taskReader follows with the SSE task protocol, and continues after the last event. A
// page that is loaded again begins with the history.
type taskReader struct {
	*reader
	last    string
	partial *item // the text that is streamed now
	fresh   bool
}

func tasks() *reader {
	r := &reader{name: "SSE tasks", parts: true, atEnd: true}
	t := &taskReader{reader: r}
	r.reload = func() { t.fresh = true }
	r.follow = func(ctx context.Context, _ *reader, url string) error { return t.follow(ctx, url) }
	return r
}

func (t *taskReader) follow(ctx context.Context, base string) error {
	events := base + "/sse/api/v1/sessions/" + session + "/events"
	t.mu.Lock()
	fresh := t.fresh
	t.fresh = false // it may be loaded again while it reads the history
	t.mu.Unlock()
	if fresh {
		if err := t.history(ctx, events+"/history?thread="+thread); err != nil {
			t.change(func() { t.fresh = true })
			return err
		}
	}
	target := events + "?" + url.Values{"thread": {thread}, "view": {"effective"}, "lastEventId": {t.last}}.Encode()
	status, err := t.stream(request(ctx, http.MethodGet, target, "", "Accept", "text/event-stream"), func(f sse.Frame) error {
		return t.take(f.Data)
	})
	if status == http.StatusNoContent {
		return nil
	}
	return err
}

// history takes the finished events.
func (t *taskReader) history(ctx context.Context, target string) error {
	h, err := get[struct{ Events []json.RawMessage }](ctx, target)
	if err != nil {
		return err
	}
	t.change(func() {
		t.partial = nil
		t.reset()
	})
	for _, raw := range h.Events {
		if err := t.take(raw); err != nil {
			return err
		}
	}
	return nil
}

func (t *taskReader) take(raw []byte) error {
	var e taskEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	t.last = e.Sequence.String()
	t.change(func() { t.apply(&e) })
	return nil
}

func (t *taskReader) apply(e *taskEvent) {
	switch d := &e.Data; e.Type {
	case "user_message":
		t.open(payload.RoleUser, t.last).Text = d.Text
	case "thinking":
		t.open(payload.RoleReasoning, t.last).Text = d.Text
	case "message":
		if t.partial == nil {
			t.partial = t.open(payload.RoleAssistant, t.last)
		}
		if d.IsPartial {
			t.partial.Text += d.Text
			return
		}
		t.partial.Text, t.partial = d.FullText, nil
	case "tool_start":
		it := t.open(call, d.ToolID)
		it.Name, it.Args = d.ToolName, string(d.ToolInput)
	case "tool_complete":
		t.open(call, d.ToolID).Result = d.Result
	case "agent_complete", "error", "cancelled":
		t.partial = nil
	}
}

func get[T any](ctx context.Context, target string) (out T, err error) {
	resp, err := http.DefaultTransport.RoundTrip(request(ctx, http.MethodGet, target, ""))
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return out, fmt.Errorf("%s: %s", target, resp.Status)
	}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}
