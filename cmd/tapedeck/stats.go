package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newStats(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Show what a server does: requests, commits, followers, runs",
		Long: `Stats asks the server of the data folder, or the one at --url, what it has done since
its start and what waits now. With access control it needs the token of an admin in
$TAPEDECK_TOKEN. docs/observability.md explains the figures.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.reading(c.Context(), func(conn *connection) error {
				if conn.holds() {
					return tapedeck.Errorf(tapedeck.Unavailable, "no server uses %s, so there is nothing to count", e.folder()).
						WithHint("start one with tapedeck serve; what the folder has is shown by tapedeck doctor, ls and usage")
				}
				return e.stats(c.Context(), conn)
			})
		},
	}
}

func (e *env) stats(ctx context.Context, c *connection) error {
	s, err := c.Stats(ctx)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(s)
	}
	return e.printStats(&s)
}

func (e *env) printStats(s *api.Stats) error {
	st, p := &s.Store, e.pen()
	lines := [][2]string{
		{"server", fmt.Sprintf("%s %s, since %s (%s)", terminal.Clean(s.Version), terminal.Clean(s.Instance), s.Started.Format(time.RFC3339), time.Since(s.Started).Round(time.Second))},
		{"store", fmt.Sprintf("%s, %s of data, %s of log", terminal.Clean(st.Kind), bytesOf(st.DataBytes), bytesOf(st.LogBytes))},
		{"appended", fmt.Sprintf("%d events, %s", st.Events, bytesOf(st.Bytes))},
		{"commits", fmt.Sprintf("%d for %d requests, %s each, %d failed", st.Groups, st.Requests, mean(st.CommitSeconds, st.Groups), st.Failures)},
		{"queue", fmt.Sprintf("%d requests wait for the writer", st.Queue)},
		{"cache", fmt.Sprintf("%d sessions; %s of newest events, %s of reads answered by them", st.Cached, bytesOf(st.TailBytes), share(st.TailHits, st.TailMisses))},
		{"followers", fmt.Sprintf("%d, %d of them behind", s.Followers.Open, s.Followers.Behind)},
		{"runs", fmt.Sprintf("%d running, %d waiting for people, %d inputs queued; ended: %s", s.Runs.Running, s.Runs.Waiting, s.Runs.Inputs, counts(s.Runs.Ended))},
		{"search", fmt.Sprintf("%d sessions not indexed", s.Search.Behind)},
		{"memory", fmt.Sprintf("%s of objects, %s of request bodies, %d goroutines", bytesOf(s.Heap), bytesOf(s.Bodies), s.Goroutines)},
	}
	for _, l := range lines {
		if err := p.Printf("%-10s %s\n", l[0], l[1]); err != nil {
			return err
		}
	}
	for _, r := range s.Requests {
		if err := p.Printf("%-10s %-16s %d answered, %s each, %d open (%d streams); errors: %s\n",
			"requests", terminal.Clean(r.Protocol), r.Answered, mean(r.Seconds, r.Answered), r.Open, r.Streams, counts(r.Errors)); err != nil {
			return err
		}
	}
	return nil
}

// bytesOf writes a size for people.
func bytesOf(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// mean writes the mean of n times that took seconds together.
func mean(seconds float64, n int64) string {
	if n == 0 {
		return "0s"
	}
	return time.Duration(seconds / float64(n) * float64(time.Second)).Round(10 * time.Microsecond).String()
}

// share writes a part of a whole as a percentage.
func share(part, rest int64) string {
	if part+rest == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%d %%", 100*part/(part+rest))
}

// counts writes numbers by name, without those that are 0.
func counts(m map[string]int64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name] > 0 {
			out = append(out, fmt.Sprintf("%d %s", m[name], terminal.Clean(name)))
		}
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}
