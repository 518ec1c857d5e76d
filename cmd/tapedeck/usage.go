package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

// The values of --by.
const (
	byDay   = "day"
	byAgent = "agent"
	byModel = "model"
)

func newUsage(e *env) *cobra.Command {
	var q client.UsageQuery
	var by string
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show what agents used: tokens, money and failures by day, agent or model",
		Long: `Usage adds up what the ended runs of all sessions used. A run counts for the day on which
it ended, in UTC. FAILED counts the runs that failed or were interrupted. COST is what
models reported; - means that none was reported. --from and --to take a day (2026-01-31),
a time or an age (12h, 7d).`,
		Example: `  tapedeck usage --from 7d
  tapedeck usage --from 2026-01-01 --to 2026-01-31 --by model`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if by != byDay && by != byAgent && by != byModel {
				return usageError("--by takes day, agent or model, not %q", by)
			}
			var err error
			now := time.Now()
			if q.From, err = dayFlag("--from", q.From, now); err != nil {
				return err
			}
			if q.To, err = dayFlag("--to", q.To, now); err != nil {
				return err
			}
			return e.reading(c.Context(), func(conn *connection) error { return e.usage(c.Context(), conn, q, by) })
		},
	}
	fl := c.Flags()
	fl.StringVar(&by, "by", byDay, "one line each day, agent or model")
	fl.StringVar(&q.From, "from", "30d", "only runs that ended on this day or later; an empty text for all")
	fl.StringVar(&q.To, "to", "", "only runs that ended on this day or earlier")
	fl.StringVar(&q.Agent, "agent", "", "only runs of this agent")
	fl.StringVar(&q.Owner, "owner", "", "only sessions of this owner")
	return c
}

// dayFlag reads a flag that names a day, and returns the day in UTC.
func dayFlag(name, text string, now time.Time) (string, error) {
	at, err := parseTime(text, now)
	if err != nil {
		return "", usageError("%s: %w", name, err)
	}
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return text, nil // a day is meant as it is written, whatever the time zone
	}
	if at.IsZero() {
		return "", nil
	}
	return at.UTC().Format(time.DateOnly), nil
}

func (e *env) usage(ctx context.Context, c *connection, q client.UsageQuery, by string) error {
	u, err := c.Usage(ctx, q)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(&u)
	}
	if u.Sessions == 0 {
		fmt.Fprintln(e.stderr, "no run ended in this time")
		return nil
	}
	return e.printUsage(&u, by)
}

func (e *env) printUsage(u *api.Usage, by string) error {
	p := e.pen()
	head := map[string]string{byDay: "DAY (UTC)", byAgent: "AGENT", byModel: "MODEL"}[by]
	if err := p.Printf("%s\n", p.Paint(terminal.Dim, fmt.Sprintf("%-28s  %7s  %7s  %7s  %7s  %13s  %13s  %10s", head, "RUNS", "FAILED", "TOOLS", "FAILED", "INPUT", "OUTPUT", "COST"))); err != nil {
		return err
	}
	line := func(name string, f *view.Used) error {
		return p.Printf("%-28s  %7d  %7d  %7d  %7d  %13d  %13d  %10s\n", terminal.Brief(name, 28), f.Runs, f.RunsFailed, f.ToolCalls, f.ToolsFailed, f.Input, f.Output, costOf(f.CostUSD))
	}
	for _, l := range usageLines(u, by) {
		if err := line(l.name, l.used); err != nil {
			return err
		}
	}
	return line("total", &u.Total)
}

// A usageLine is a line of the table.
type usageLine struct {
	name string
	used *view.Used
}

func usageLines(u *api.Usage, by string) (out []usageLine) {
	switch by {
	case byAgent:
		for i := range u.Agents {
			out = append(out, usageLine{orUnknown(u.Agents[i].Agent), &u.Agents[i].Used})
		}
	case byModel:
		for i := range u.Models {
			out = append(out, usageLine{orUnknown(u.Models[i].Model), &u.Models[i].Used})
		}
	default:
		for i := range u.Days {
			out = append(out, usageLine{u.Days[i].Day, &u.Days[i].Used})
		}
	}
	return out
}

func orUnknown(name string) string {
	if name == "" {
		return "(unknown)"
	}
	return name
}

func costOf(usd *float64) string {
	if usd == nil {
		return "-"
	}
	return fmt.Sprintf("$%.4f", *usd)
}
