package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/transcript"
	"github.com/tapedeck/tapedeck/payload"
)

// harmless is the task that tests an agent.
const harmless = "Say hello."

func newAgentsTest(e *env) *cobra.Command {
	var limit time.Duration
	c := &cobra.Command{
		Use:   "test NAME",
		Short: "Give an agent one harmless task to see whether it works",
		Long: `Test gives an agent the task "` + harmless + `" and reports whether that worked. It
uses a temporary session in this process. Every question of the agent is denied.`,
		Example: `  tapedeck agents test coder`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("%s takes the name of an agent; list agents with: tapedeck agents", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := context.WithTimeout(c.Context(), limit)
			defer stop()
			return e.testAgent(ctx, args[0])
		},
	}
	c.Flags().DurationVar(&limit, "timeout", 2*time.Minute, "how long the test may take")
	return c
}

// A trial is the result of a test.
type trial struct {
	Agent   string        `json:"agent"`
	OK      bool          `json:"ok"`
	Seconds float64       `json:"seconds"`
	Said    payload.Piece `json:"said,omitempty"`
	Error   string        `json:"error,omitempty"`
}

func (e *env) testAgent(ctx context.Context, name string) error {
	c, err := e.readConfig()
	if err != nil {
		return err
	}
	a, err := openApp(ctx, appOptions{ephemeral: true, config: c})
	if err != nil {
		return err
	}
	begin := time.Now()
	t, err := a.try(ctx, name)
	if ctx.Err() != nil && err != nil {
		t.Error = "the test took too long or was interrupted"
		err = nil
	}
	t.Seconds = time.Since(begin).Round(10 * time.Millisecond).Seconds()
	_ = a.close() // everything is in memory only
	if err != nil {
		return err
	}
	return e.printTrial(&t)
}

// try runs the task to its end and reports the result.
func (a *app) try(ctx context.Context, name string) (trial, error) {
	t := trial{Agent: name}
	started, err := a.Run(ctx, api.Task{Agent: name, Text: harmless})
	if tapedeck.KindOf(err) == tapedeck.Unavailable {
		t.Error = err.Error()
		return t, nil
	}
	if err != nil {
		return t, hereOnly(err)
	}
	for ev, err := range a.Follow(ctx, started.Session, started.Offset) {
		if err != nil {
			return t, err
		}
		if a.note(ctx, started.Session, &t, &ev) {
			return t, nil
		}
	}
	return t, nil
}

// hereOnly adds to the error of an unknown agent that a server may know it.
func hereOnly(err error) error {
	var unknown *tapedeck.Error
	if !errors.As(err, &unknown) || unknown.Kind != tapedeck.NotFound {
		return err
	}
	return unknown.WithHint("%s; the test runs in this process, which knows only the agents of the configuration here", unknown.Hint)
}

// note adds an event to the result and reports whether it is the last one.
func (a *app) note(ctx context.Context, session string, t *trial, ev *tapedeck.Event) bool {
	var d struct {
		Delta   json.RawMessage
		Message json.RawMessage
		ID      string
		Options []tapedeck.PermissionOption
	}
	_ = json.Unmarshal(ev.Data, &d)
	switch ev.Type {
	case tapedeck.TextMessageContent:
		t.Said += transcript.Piece(d.Delta)
	case tapedeck.PermissionRequested:
		if option, ok := chooseOption(d.Options, permitDeny); ok {
			_, _ = a.Session(session).Answer(ctx, api.Answer{Permission: d.ID, Option: option, Offset: &ev.Offset})
		}
	case tapedeck.RunError:
		t.Error = transcript.Text(d.Message)
		return true
	case tapedeck.RunFinished:
		t.OK = strings.TrimSpace(string(t.Said)) != ""
		if !t.OK {
			t.Error = "the run ended without any text"
		}
		return true
	}
	return false
}

func (e *env) printTrial(t *trial) error {
	var err error
	p := e.pen()
	switch {
	case e.json:
		err = e.printJSON(t)
	case t.OK:
		err = p.Printf("%s %s in %.2f s: %s\n", p.Paint(terminal.Green, "ok"), t.Agent, t.Seconds, terminal.Brief(t.Said.Whole(), 100))
	default:
		err = p.Printf("%s %s after %.2f s: %s\n", p.Paint(terminal.Red, "failed"), t.Agent, t.Seconds, terminal.Brief(t.Error, 300))
	}
	if err == nil && !t.OK {
		err = &exitError{code: exitFailed}
	}
	return err
}
