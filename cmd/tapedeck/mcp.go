package main

import (
	"context"
	"errors"
	"io"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
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
			return e.serveMCP(c.Context(), write, own)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&write, "write", false, "allow tools that run agents, cancel runs, rewind and fork")
	fl.BoolVar(&own, "own-session", false, "allow these tools in the session in which the agent that uses them runs itself; needs --write")
	return c
}

func (e *env) serveMCP(ctx context.Context, write, own bool) (err error) {
	conn := &sharedConnection{env: e}
	if _, err := conn.acquire(ctx); err != nil { // a user learns at once that the server or the folder cannot be used
		return err
	}
	conn.release()
	defer func() { err = errors.Join(err, conn.close()) }()
	o := mcp.Options{Reader: sharedReader{conn}, OwnSession: own, Version: version()}
	if write {
		o.Writer = sharedWriter{conn}
	}
	if in, ok := e.stdin.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		e.notice("waiting for an MCP client: an agent starts this command (Ctrl-C to end it)")
	}
	err = mcp.Serve(ctx, o, &sdk.IOTransport{Reader: io.NopCloser(e.stdin), Writer: keepOpen{e.stdout}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil { // the client has ended, or wants this command to end
		return nil
	}
	if err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the standard input is not from an MCP client: %w", err).
			WithHint("an agent starts this command; see: tapedeck mcp --help")
	}
	return nil
}

// keepOpen is a writer that the transport does not close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
