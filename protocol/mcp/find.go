package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/search"
)

type listInput struct {
	Status string `json:"status,omitempty" jsonschema:"only sessions with this status"`
	Agent  string `json:"agent,omitempty" jsonschema:"only sessions of this agent"`
	Owner  string `json:"owner,omitempty" jsonschema:"only sessions of this owner"`
	Parent string `json:"parent,omitempty" jsonschema:"only forks of this session"`
	From   string `json:"from,omitempty" jsonschema:"only sessions created at this time or later: 2026-01-31 or 2026-01-31T12:00:00Z"`
	To     string `json:"to,omitempty" jsonschema:"only sessions created before this time"`
	Cursor string `json:"cursor,omitempty" jsonschema:"the value of next in the previous page"`
	Limit  int    `json:"limit,omitempty" jsonschema:"the largest number of sessions"`
}

type searchInput struct {
	Query   string `json:"query" jsonschema:"the words, all of which must occur; \"words in quotes\" follow each other, word* also matches longer words, -word must not occur"`
	Session string `json:"session,omitempty" jsonschema:"only in this session"`
	Kind    string `json:"kind,omitempty" jsonschema:"only text of this kind"`
	Role    string `json:"role,omitempty" jsonschema:"only messages of this role, such as user or assistant"`
	Status  string `json:"status,omitempty" jsonschema:"only in sessions with this status"`
	Agent   string `json:"agent,omitempty" jsonschema:"only in sessions of this agent"`
	Owner   string `json:"owner,omitempty" jsonschema:"only in sessions of this owner"`
	From    string `json:"from,omitempty" jsonschema:"only text of this time or later: 2026-01-31 or 2026-01-31T12:00:00Z"`
	To      string `json:"to,omitempty" jsonschema:"only text from before this time"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the value of next in the previous page"`
	Limit   int    `json:"limit,omitempty" jsonschema:"the largest number of matches"`
}

var status = choice(
	string(tapedeck.StatusIdle), string(tapedeck.StatusPending), string(tapedeck.StatusRunning), string(tapedeck.StatusWaiting), string(tapedeck.StatusComplete),
	string(tapedeck.StatusFailed), string(tapedeck.StatusCancelled), string(tapedeck.StatusInterrupted),
)

func (s *server) addFindTools() {
	addTool(s, tool{
		name: "list_sessions", title: "List sessions",
		description: "List the sessions, newest first. " + dataNotice,
		request:     requestSchema[listInput]("", map[string]field{"limit": number(defaultSessions, 1, maxSessions), "status": status}),
		answer:      component("Sessions"),
	}, s.list)
	addTool(s, tool{
		name: "search_sessions", title: "Search sessions",
		description: "Find text in the conversations of all sessions, or of one: messages, tool calls and titles. The best matches come first, each with its session and offset. " + dataNotice,
		request: requestSchema[searchInput]("", map[string]field{
			"limit": number(defaultHits, 1, maxHits), "status": status, "kind": choice(search.DocMessage, search.DocTool, search.DocTitle),
		}),
		answer: component("SearchResult"),
	}, s.search)
}

func (s *server) list(ctx context.Context, _ *sdk.CallToolRequest, in listInput) (answer, error) {
	f := tapedeck.Filter{
		Status: tapedeck.Status(in.Status), Agent: in.Agent, Owner: in.Owner, Parent: in.Parent, Cursor: in.Cursor, Limit: in.Limit,
	}
	err := checkOptionalID("the parent", in.Parent)
	if err == nil {
		f.From, err = parseTime("from", in.From)
	}
	if err == nil {
		f.To, err = parseTime("to", in.To)
	}
	if err != nil {
		return answer{}, err
	}
	page, err := s.Reader.Sessions(ctx, f)
	if err != nil {
		return answer{}, err
	}
	list := page.Sessions
	out := api.Sessions{Sessions: make([]api.SessionRow, len(list)), Next: page.Next}
	var b strings.Builder
	for i := range list {
		limitSession(&list[i])
		out.Sessions[i].Session = list[i]
		b.WriteString(sessionLine(&list[i]) + "\n")
	}
	switch {
	case len(list) == 0:
		b.WriteString("There are no such sessions.\n")
	case page.Next != "":
		fmt.Fprintf(&b, "There are more: use cursor %q.\n", page.Next)
	}
	return answer{b.String(), out}, nil
}

// limitSession leaves out what is too large for a list.
func limitSession(s *tapedeck.Session) {
	size := 0
	for name, value := range s.Labels {
		size += len(name) + len(value)
	}
	if size > labelBytes {
		s.Labels = nil
	}
	s.Runs = s.Runs[:min(len(s.Runs), maxRuns)]
}

// sessionLine describes a session on one line.
func sessionLine(s *tapedeck.Session) string {
	line := fmt.Sprintf("%s (%s, %d events, created %s)", s.ID, s.Status, s.Head, s.Created.UTC().Format("2006-01-02 15:04"))
	if s.Title != "" {
		line += " " + brief(s.Title)
	}
	if s.Parent != "" {
		line += ", a fork of " + s.Parent
	}
	return line
}

func (s *server) search(ctx context.Context, _ *sdk.CallToolRequest, in searchInput) (answer, error) {
	q := search.Query{
		Text: in.Query, Session: in.Session, Kind: in.Kind, Role: in.Role, Status: tapedeck.Status(in.Status),
		Agent: in.Agent, Owner: in.Owner, Cursor: in.Cursor, Limit: in.Limit,
	}
	err := checkOptionalID("the session", in.Session)
	if err == nil {
		q.From, err = parseTime("from", in.From)
	}
	if err == nil {
		q.To, err = parseTime("to", in.To)
	}
	if err == nil && in.Session != "" { // otherwise an unknown session would look like one without matches
		_, err = s.Reader.Session(ctx, in.Session)
	}
	if err != nil {
		return answer{}, err
	}
	found, err := s.Reader.Search(ctx, q)
	if err != nil {
		return answer{}, err
	}
	var b strings.Builder
	for i := range found.Hits {
		h := &found.Hits[i]
		reverted := ""
		if h.Rewound {
			reverted = ", reverted"
		}
		fmt.Fprintf(&b, "%s, offset %d (%s%s)\n", h.Session, h.Offset, or(h.Role, h.Kind), reverted)
		quote(&b, h.Snippet)
	}
	switch {
	case len(found.Hits) == 0:
		found.Hits = []search.Hit{} // not null
		b.WriteString("Nothing was found.\n")
	case found.Next != "":
		fmt.Fprintf(&b, "There are more: use cursor %q.\n", found.Next)
	}
	if found.Behind > 0 {
		fmt.Fprintf(&b, "The newest events of %d sessions are not in the index yet.\n", found.Behind)
	}
	return answer{b.String(), found}, nil
}

// or returns a cleaned name, or another one if it is empty.
func or(name, other string) string {
	if name == "" {
		name = other
	}
	name, _ = cutText(strings.Join(strings.Fields(clean(name)), " "), 60)
	return name
}
