package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

type summaryInput struct {
	Session string `json:"session" jsonschema:"the id of the session"`
	At      *int64 `json:"at,omitempty" jsonschema:"the session as it was before this offset; without it, as it is now"`
}

// A summary is a [view.Summary] within the limits.
type summary struct {
	view.Summary
	ToolsLeftOut  int `json:"tools_left_out,omitempty"`
	ModelsLeftOut int `json:"models_left_out,omitempty"`
}

func (s *server) addSummaryTool() {
	answer := component("Summary")
	with(answer, "tools_left_out", "number of further tools, which were called less often")
	with(answer, "models_left_out", "number of further models, which used fewer tokens")
	addTool(s, tool{
		name: "session_summary", title: "Sum up a session",
		description: "Show the totals of a session: status, runs, messages, tokens, cost, tools and changed files. " + dataNotice,
		request:     requestSchema[summaryInput]("", map[string]field{"at": offset}),
		answer:      answer,
	}, s.summary)
}

func (s *server) summary(ctx context.Context, _ *sdk.CallToolRequest, in summaryInput) (answer, error) {
	if err := tapedeck.CheckID("the session", in.Session); err != nil {
		return answer{}, err
	}
	whole, err := s.Reader.Summary(ctx, in.Session, orHead(in.At))
	if err != nil {
		return answer{}, err
	}
	out := summary{Summary: whole}
	if n := len(whole.Tools); n > maxNames {
		tools := slices.SortedStableFunc(slices.Values(whole.Tools), func(a, b view.ToolUsage) int { return cmp.Compare(b.Count, a.Count) })
		out.Tools, out.ToolsLeftOut = tools[:maxNames], n-maxNames
	}
	if n := len(whole.Models); n > maxNames {
		models := slices.SortedStableFunc(slices.Values(whole.Models), func(a, b view.ModelUsage) int { return cmp.Compare(b.Total, a.Total) })
		out.Models, out.ModelsLeftOut = models[:maxNames], n-maxNames
	}
	if n := len(whole.FilesModified); n > maxNames {
		out.FilesModified, out.FilesLeftOut = whole.FilesModified[:maxNames], whole.FilesLeftOut+int64(n-maxNames)
	}
	return answer{out.text(in.Session), out}, nil
}

func (s *summary) text(session string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Session %s: %s, %d events. %d turns, %d model calls, %d tokens", session, s.Status, s.Events+s.InheritedEvents, s.Turns, s.ModelTurns, s.Tokens.Total)
	if s.CostUSD != nil {
		fmt.Fprintf(&b, ", %.4f USD", *s.CostUSD)
	}
	fmt.Fprintf(&b, ", %d ms of runs.\n", s.DurationMS)
	for i := range s.Tools {
		t := &s.Tools[i]
		fmt.Fprintf(&b, "tool %s: %d calls, %d failed\n", brief(t.Name), t.Count, t.Failed)
	}
	if n := int64(len(s.FilesModified)) + s.FilesLeftOut; n > 0 {
		fmt.Fprintf(&b, "%d files were changed (+%d -%d lines):\n", n, s.LinesAdded, s.LinesRemoved)
		for _, f := range s.FilesModified {
			quote(&b, strings.ReplaceAll(f, "\n", " "))
		}
	}
	return b.String()
}
