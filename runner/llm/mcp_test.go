package llm_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
}
