package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/llm"
	"github.com/tapedeck/tapedeck/runner/llm/mcp"
)

// TestServers checks that a tool of a server works like any other tool, under a name that
// providers accept.
func TestServers(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "test"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "say.it"}, func(_ context.Context, _ *sdk.CallToolRequest, a struct {
		Text string `json:"text"`
	}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "you said " + a.Text}}}, nil, nil
	})
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer s.Close()
	w := newWorld()
	w.options.Servers = []mcp.Server{{Name: "one", URL: s.URL}, {Name: "two", URL: s.URL}}
	w.options.Policy = llm.Policy{{"one__*", llm.Allow}}
	const want = "said Now I call one__say_it.\nanswered one__say_it: you said hi\nsaid Now I call two__say_it.\n" +
		"failed two__say_it: two__say_it needs a permission, and nobody can be asked here, so it is not allowed.\nsaid Done after 2 tool results."
	in := task(`[tool one__say_it {"text":"hi"}] [tool two__say_it {"text":"hi"}]`)
	if got := summary(collect(t.Context(), w.runner(), in)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	const equipment = `{"name":"tapedeck.equipment","value":{"model":"test-model","tools":["todo_write","one__say_it","two__say_it"]}}`
	for e, err := range w.runner().Run(t.Context(), in) {
		if err != nil || string(e.Data) != equipment {
			t.Errorf("the first event is %s %s: %v", e.Type, e.Data, err)
		}
		break
	}
}

// TestArgumentsOfServers: nobody is asked about a call that does not match the schema of a
// server. A schema that cannot be used, or is hostile, checks nothing and costs little.
func TestArgumentsOfServers(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "test"}, nil)
	var many string // parts that each refer to the next one twice
	for i := range 40 {
		many += fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%[2]d"}]},`, i, i+1)
	}
	for name, schema := range map[string]string{
		"fork":    `{"type":"object","required":["session"],"properties":{"session":{"type":"string"},"at":{"type":"integer"}}}`,
		"loop":    `{"type":"object","allOf":[{"$ref":"#"}]}`,
		"many":    `{"type":"object","$ref":"#/$defs/a0","$defs":{` + many + `"a40":{"required":["x"]}}}`,
		"pattern": `{"type":"object","patternProperties":{"(?=a)b":false}}`,
		"old":     `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","required":["x"]}`,
		"large":   `{"type":"object","required":["x"],"description":"` + strings.Repeat("x", 200<<10) + `"}`,
	} {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(schema)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
		})
	}
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer s.Close()
	for call, want := range map[string]string{
		`fork {}`:                        `The arguments do not match the schema: the arguments must have "session".`,
		`fork {"session":5}`:             "The arguments do not match the schema: session must be a string, not an integer.",
		`fork {"session":"a","at":"7"}`:  "The arguments do not match the schema: at must be an integer, not a string.",
		`fork {"session":"a","at":null}`: "", `fork {"session":"a","at":7}`: "", `loop {}`: "", `many {}`: "", `pattern {}`: "", `old {}`: "", `large {}`: "",
	} {
		w := newWorld()
		w.options.Servers = []mcp.Server{{Name: "td", URL: s.URL}}
		in, asked := task("[tool td__"+call+"]"), 0
		in.Ask = func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
			asked++
			return tapedeck.Choice{ID: q.ID, Option: "allow_once"}, nil
		}
		got := summary(collect(t.Context(), w.runner(), in))
		if want == "" && (asked != 1 || !strings.Contains(got, ": done\n")) || want != "" && (asked != 0 || !strings.Contains(got, ": "+want+"\n")) {
			t.Errorf("%s: asked %d times\n%s", call, asked, got)
		}
	}
}
