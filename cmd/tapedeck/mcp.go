package main

import (
	"context"
	"errors"
	"io"
	"iter"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/protocol/mcp"
)

func newMCP(e *env) *cobra.Command {
	var write, own bool
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve sessions to an agent over MCP",
		Long: `Mcp speaks the Model Context Protocol on its standard input and output. An agent that
supports MCP starts this command and gets tools that list, search, read and compare
sessions. It can subscribe to sessions as resources.

With --write the agent can also run agents, cancel runs, rewind and fork. There is no
tool that answers the questions of agents.

"tapedeck serve" offers the same tools over HTTP, at /mcp.`,
		Example: `  tapedeck mcp --data /var/lib/tapedeck
  claude mcp add tapedeck -- tapedeck mcp`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if own && !write {
				return usageError("--own-session needs --write")
			}
			e.startsAgents = write
			return e.with(c.Context(), func(conn *connection) error { return e.serveMCP(c.Context(), conn, write, own) })
		},
	}
	fl := c.Flags()
	fl.BoolVar(&write, "write", false, "allow tools that run agents, cancel runs, rewind and fork")
	fl.BoolVar(&own, "own-session", false, "allow these tools in the session in which the agent that uses them runs itself; needs --write")
	return c
}

func (e *env) serveMCP(ctx context.Context, conn *connection, write, own bool) error {
	o := mcp.Options{Reader: remoteReader{conn}, OwnSession: own, Version: version()}
	if write {
		o.Writer = conn.Client
	}
	err := mcp.Serve(ctx, o, &sdk.IOTransport{Reader: io.NopCloser(e.stdin), Writer: keepOpen{e.stdout}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil { // the client has ended, or wants this command to end
		return nil
	}
	return err
}

// keepOpen is a writer that the transport does not close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// remoteReader reads sessions through the HTTP API.
type remoteReader struct{ *connection }

func (r remoteReader) Events(ctx context.Context, session string, q mcp.Query) (tapedeck.Page, error) {
	o := client.PageOptions{
		From: max(q.From, 0), Limit: q.Limit, Reverse: q.Reverse, Effective: q.Effective,
		Channels: q.Select.Channels, Threads: q.Select.Threads, Types: q.Select.Types,
	}
	if len(q.Select.Invocations) > 0 {
		o.Invocation = q.Select.Invocations[0]
	}
	return r.Page(ctx, session, o)
}

func (r remoteReader) Follow(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(yield func(tapedeck.Page, error) bool) {
		from := client.FollowOptions{PageOptions: client.PageOptions{From: o.From}, Locate: r.locate}
		for record, err := range r.Client.Follow(ctx, session, from) {
			p := tapedeck.Page{Records: []tapedeck.Record{record}, Next: record.Offset + 1, Head: record.Offset + 1}
			if !yield(p, err) {
				return
			}
		}
	}
}
