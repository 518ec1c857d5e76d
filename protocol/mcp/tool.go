package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
)

// A tool describes a tool to clients.
type tool struct {
	name, title, description string
	request                  *schema
	answer                   *schema  // nil for none
	changes                  *changes // nil: the tool only reads
}

// changes says what a tool changes.
type changes struct {
	destructive bool // it may end or revert something
	openWorld   bool // it starts an agent, which may do anything
}

// An answer is the result of a tool.
type answer struct {
	text string // for the model: short, with all that the model needs
	data any    // for programs, as JSON
}

// addTool adds a tool. In is the type of its arguments. The SDK checks them against the
// schema, so do is called with numbers and words in their limits only.
func addTool[In any](s *server, t tool, do func(context.Context, *sdk.CallToolRequest, In) (answer, error)) {
	no, yes := false, true
	described := &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: t.request,
		Annotations: &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: t.changes == nil, OpenWorldHint: &no, DestructiveHint: &no},
	}
	if t.answer != nil {
		described.OutputSchema = answerSchema(t.answer)
	}
	if t.changes != nil && t.changes.destructive {
		described.Annotations.DestructiveHint = &yes
	}
	if t.changes != nil && t.changes.openWorld {
		described.Annotations.OpenWorldHint = &yes
	}
	sdk.AddTool(s.sdk, described, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		out, err := do(ctx, req, in)
		var data []byte
		if err == nil {
			data, err = encode(out.data)
		}
		if err != nil {
			return failure(s.public(ctx, t.name, err)), nil, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.text}}, StructuredContent: json.RawMessage(data)}, nil, nil
	})
}

// encode returns v as JSON.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("%T cannot be encoded: %w", v, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// checkOptionalID checks an id that may be empty.
func checkOptionalID(what, id string) error {
	if id == "" {
		return nil
	}
	return tapedeck.CheckID(what, id)
}

// parseTime reads a time or a day; "" is the zero time.
func parseTime(name, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, tapedeck.Errorf(tapedeck.Invalid, "%s must be a time such as 2026-01-05T12:34:56Z, or a day, not %.40q", name, s)
}

// orHead returns an offset, -1 for the head if it is absent.
func orHead(at *int64) int64 {
	if at == nil {
		return -1
	}
	return *at
}
