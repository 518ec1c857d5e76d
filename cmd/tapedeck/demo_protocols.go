package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
)

// The sessions of the demo that begin over other protocols.
const (
	demoAGUI = "demo_agui"
	demoA2A  = "demo_a2a"
)

// Their tasks. The text in brackets is for the scripted model of tinker.
const (
	aguiTask = `Write a note about Bern. [think]
[tool write_file {"path":"bern.md","content":"# Bern\n\nThe old town is in a loop of the Aare.\n"}]`
	a2aTask = "Introduce yourself to the agent that asks you"
)

// demoProtocols gives two agents of the server at url a task each, as a front end does
// over AG-UI and as another agent does over A2A. It does nothing for a session that has
// more than its beginning.
func demoProtocols(ctx context.Context, a *app, url string) error {
	for _, d := range []struct {
		id, title string
		send      func(ctx context.Context, url string) error
	}{
		{demoA2A, "A task from another agent, over A2A", sendOverA2A},
		{demoAGUI, "A task from a front end, over AG-UI", runOverAGUI},
	} {
		if err := demoSession(ctx, a, d.id, d.title); err != nil {
			return err
		}
		s, err := a.Session(d.id).Info(ctx)
		if err != nil {
			return err
		}
		if s.Head > 1 {
			continue // of an earlier start
		}
		if err := d.send(ctx, url); err != nil {
			return err
		}
	}
	return nil
}

// runOverAGUI runs tinker as a front end does. It approves what the agent asks: in AG-UI
// a run ends with its questions, and the next one has the answers.
func runOverAGUI(ctx context.Context, url string) error {
	in := map[string]any{
		"protocolVersion": "1.0", "threadId": demoAGUI, "state": map[string]any{}, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
		"messages": []payload.Message{payload.NewMessage("demo_agui_1", payload.RoleUser, aguiTask)},
	}
	for {
		in["runId"] = tapedeck.NewID("run_")
		var end payload.RunFinished
		err := stream(ctx, url+"/agui/tinker", in, func(raw []byte) error {
			e := tapedeck.Event{Data: raw}
			if e.Type = typeOf(raw); e.Type == tapedeck.RunError {
				return tapedeck.Errorf(tapedeck.Unavailable, "the run over AG-UI has failed: %s", raw)
			} else if e.Type != tapedeck.RunFinished {
				return nil
			}
			var err error
			end, err = payload.DecodeAs[payload.RunFinished](e)
			return err
		})
		if err != nil || end.Outcome == nil || end.Outcome.Type != payload.OutcomeInterrupt {
			return err
		}
		var answers []map[string]any
		for _, i := range end.Outcome.Interrupts {
			answers = append(answers, map[string]any{"interruptId": i.ID, "status": "resolved", "payload": map[string]bool{"approved": true}})
		}
		in["resume"] = answers
	}
}

func typeOf(raw []byte) string {
	var d struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &d) // an event without a type is none
	return d.Type
}

// sendOverA2A sends hello a message as another agent does, and reads its stream.
func sendOverA2A(ctx context.Context, url string) error {
	message := map[string]any{"messageId": "demo_a2a_1", "role": "ROLE_USER", "contextId": demoA2A, "parts": []map[string]string{{"text": a2aTask}}}
	request := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": map[string]any{"message": message}}
	return stream(ctx, url+"/a2a/hello", request, func(raw []byte) error {
		var d struct {
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(raw, &d); err != nil || d.Error != nil {
			return tapedeck.Errorf(tapedeck.Unavailable, "the message over A2A was refused: %s", raw)
		}
		return nil
	})
}

// stream posts a request and calls on for each event of the answer.
func stream(ctx context.Context, url string, body any, on func(raw []byte) error) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0") // AG-UI ignores it
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return tapedeck.Errorf(tapedeck.Unavailable, "%s answers with the status %d", url, resp.StatusCode)
	}
	for raw, err := range aguiwire.Frames(resp.Body, sse.MaxFrame) {
		if err == nil {
			err = on(raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
