package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

type eventsInput struct {
	Session    string   `json:"session" jsonschema:"the id of the session"`
	From       *int64   `json:"from,omitempty" jsonschema:"the first offset: the value of next in the previous page; without it 0. In reverse, the events before it; without it, the newest"`
	Reverse    bool     `json:"reverse,omitempty" jsonschema:"newest events first"`
	View       string   `json:"view,omitempty" jsonschema:"all: every event of the log; effective: without the events that a rewind, clear or overwrite has reverted"`
	Channels   []string `json:"channels,omitempty" jsonschema:"only events of these channels, and those about the session itself"`
	Threads    []string `json:"threads,omitempty" jsonschema:"only events of these threads, and those about the session itself"`
	Types      []string `json:"types,omitempty" jsonschema:"only events of these types, such as RUN_STARTED"`
	Invocation string   `json:"invocation,omitempty" jsonschema:"only events of this run"`
	Limit      int      `json:"limit,omitempty" jsonschema:"the largest number of events"`
	Data       int      `json:"data_limit,omitempty" jsonschema:"bytes of data of each event; an event with more has data_bytes, its size, instead of data"`
}

// maxSelected is the largest number of values of one filter.
const maxSelected = 100

func (s *server) addEventsTool() {
	answer := component("Events")
	item := component("Envelope")
	with(item, "data_bytes", "the size of the data, which is left out because it is larger than data_limit")
	answer.Properties["events"].Items = item
	answer.Properties["events"].Description = ""
	answer.Properties["next"].Description = "from of the next page; on the last page equal to head, in reverse 0"
	channels := choice(
		tapedeck.ChannelChunks, tapedeck.ChannelToolCalls, tapedeck.ChannelAgentState, tapedeck.ChannelWorkflow,
		tapedeck.ChannelTerminal, tapedeck.ChannelPresence, tapedeck.ChannelSession,
	)
	addTool(s, tool{
		name: "read_events", title: "Read events",
		description: "Read a page of the events of a session, by offset. A page can be empty although next is below head: then read on from next. " + dataNotice,
		request: requestSchema[eventsInput]("", map[string]field{
			"limit": number(defaultEvents, 1, maxEvents), "data_limit": number(defaultData, 0, maxText), "from": offset, "view": oneOf("all", "effective"),
			"channels": each(channels), "threads": each(nil), "types": each(nil),
		}),
		answer: answer,
	}, s.readEvents)
}

// each limits a member that is a list, and its items.
func each(item field) field {
	return func(s *schema) {
		most := maxSelected
		s.MaxItems = &most
		if item != nil {
			item(s.Items)
		}
	}
}

func (s *server) readEvents(ctx context.Context, _ *sdk.CallToolRequest, in eventsInput) (answer, error) {
	if err := checkSelected(&in); err != nil {
		return answer{}, err
	}
	q := Query{
		Limit: in.Limit, Reverse: in.Reverse, Effective: in.View == "effective",
		Select: view.Filter{Channels: in.Channels, Threads: in.Threads, Types: in.Types},
	}
	if in.Invocation != "" {
		q.Select.Invocations = []string{in.Invocation}
	}
	switch {
	case in.From != nil && in.Reverse && *in.From == 0:
		return answer{}, tapedeck.Errorf(tapedeck.Invalid, "there are no events before offset 0")
	case in.From != nil:
		q.From = *in.From
	case in.Reverse:
		q.From = -1
	}
	page, err := s.Reader.Events(ctx, in.Session, q)
	if err != nil {
		return answer{}, err
	}
	out := api.Events{Events: []json.RawMessage{}, Next: page.Next, Head: page.Head, Closed: page.Closed}
	var text strings.Builder
	text.WriteString("Lines that begin with \"| \" are events of the session.\n")
	size := 0
	for i, r := range page.Records {
		data, err := limitEvent(r, in.Data)
		if err != nil {
			return answer{}, err
		}
		if size += len(data); size > pageBytes && i > 0 {
			if out.Next = r.Offset; in.Reverse { // in reverse a page has the events before its begin
				out.Next++
			}
			break
		}
		out.Events = append(out.Events, data)
		quote(&text, string(data))
	}
	switch {
	case in.Reverse && out.Next > 0, !in.Reverse && out.Next < out.Head:
		fmt.Fprintf(&text, "There are more: use from %d.\n", out.Next)
	case len(out.Events) == 0:
		text.WriteString("There are no such events.\n")
	}
	return answer{text.String(), out}, nil
}

func checkSelected(in *eventsInput) error {
	err := cmp.Or(tapedeck.CheckID("the session", in.Session), checkOptionalID("the invocation", in.Invocation))
	for what, list := range map[string][]string{"the thread": in.Threads, "the type": in.Types} {
		for _, id := range list {
			if err == nil {
				err = tapedeck.CheckID(what, id)
			}
		}
	}
	// An empty list is the same as none.
	for _, list := range []*[]string{&in.Channels, &in.Threads, &in.Types} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return err
}

// limitEvent returns an event as JSON, without its data if that is too large.
func limitEvent(r tapedeck.Record, limit int) (json.RawMessage, error) {
	if len(r.Data) <= limit {
		return r.Data, nil
	}
	e, err := r.Event()
	if err != nil {
		return nil, err
	}
	size := len(e.Data)
	if size <= limit {
		return r.Data, nil
	}
	e.Data = nil
	short, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	short = append(bytes.TrimSuffix(bytes.TrimSpace(short), []byte("}")), `,"data_bytes":`...)
	return append(strconv.AppendInt(short, int64(size), 10), '}'), nil
}
