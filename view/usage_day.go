package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A DayUsage is what the runs of one agent with one model used, of those that ended on one
// day. A run with several models counts for the one with the most tokens; the others have
// their tokens and cost only.
type DayUsage struct {
	Day      string `json:"day"` // in UTC, such as 2026-01-31
	Agent    string `json:"agent,omitempty"`
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"` // "" if none was reported
	Used
}

// Used are the figures of some runs.
type Used struct {
	Runs        int64 `json:"runs"`        // those of sub-agents do not count
	RunsFailed  int64 `json:"runs_failed"` // failed or interrupted
	ToolCalls   int64 `json:"tool_calls"`
	ToolsFailed int64 `json:"tools_failed"` // the number of tool calls that failed
	Tokens
	CostUSD *float64 `json:"cost_usd,omitempty"` // absent if none was reported
}

// Add adds the figures of other runs.
func (u *Used) Add(o *Used) {
	u.Runs, u.RunsFailed = plus(u.Runs, o.Runs), plus(u.RunsFailed, o.RunsFailed)
	u.ToolCalls, u.ToolsFailed = plus(u.ToolCalls, o.ToolCalls), plus(u.ToolsFailed, o.ToolsFailed)
	u.add(o.Tokens)
	if o.CostUSD != nil {
		u.CostUSD = addCost(u.CostUSD, *o.CostUSD)
	}
}

// Round rounds the cost, so that the error of binary fractions does not show.
func (u *Used) Round() { u.CostUSD = roundCost(u.CostUSD) }

// maxDays is how many [DayUsage] a fold keeps apart. More are added to those without agent
// and model, at last to the newest one: no token is lost.
const maxDays = 500

// used returns the figures that e counts for.
func (f *SummaryFold) used(e *tapedeck.Event, agent, provider, model string) *Used {
	day := e.Time.UTC().Format(time.DateOnly)
	find := func() int {
		return slices.IndexFunc(f.s.Days, func(d DayUsage) bool {
			return d.Day == day && d.Agent == agent && d.Provider == provider && d.Model == model
		})
	}
	i := find()
	if i < 0 && len(f.s.Days) >= maxDays {
		agent, provider, model = "", "", ""
		i = find()
	}
	if i < 0 && len(f.s.Days) >= 2*maxDays {
		i = len(f.s.Days) - 1
	}
	if i < 0 {
		f.s.Days = append(f.s.Days, DayUsage{Day: day, Agent: agent, Provider: provider, Model: model})
		i = len(f.s.Days) - 1
	}
	return &f.s.Days[i].Used
}

// endUsage counts a run that e ends.
func (f *SummaryFold) endUsage(e *tapedeck.Event, r *runTally, status tapedeck.Status, models []modelTally) {
	main := modelTally{}
	for _, m := range models {
		if main.Model == "" || m.Total > main.Total {
			main = m
		}
	}
	f.addUsage(e, r.Agent, models)
	u := f.used(e, r.Agent, main.Provider, main.Model)
	if !r.Sub {
		u.Runs = plus(u.Runs, 1)
		if status == tapedeck.StatusFailed || status == tapedeck.StatusInterrupted {
			u.RunsFailed = plus(u.RunsFailed, 1)
		}
	}
	u.ToolCalls, u.ToolsFailed = plus(u.ToolCalls, r.Calls), plus(u.ToolsFailed, r.CallsFailed)
}

// addUsage counts tokens and cost.
func (f *SummaryFold) addUsage(e *tapedeck.Event, agent string, models []modelTally) {
	for _, m := range models {
		f.used(e, agent, m.Provider, m.Model).Add(&Used{Tokens: m.Tokens, CostUSD: m.CostUSD})
	}
}

// countTool counts a tool call, or the answer of one that failed, for its run. Outside of
// a run it counts for the day of e.
func (f *SummaryFold) countTool(e *tapedeck.Event, invocation string, calls, failed int64) {
	if r := f.s.Runs[invocation]; r != nil {
		r.Calls, r.CallsFailed = plus(r.Calls, calls), plus(r.CallsFailed, failed)
		return
	}
	f.used(e, agentOf(e, ""), "", "").Add(&Used{ToolCalls: calls, ToolsFailed: failed})
}

// agentOf returns the agent of an event: the named one, or the one that acts.
func agentOf(e *tapedeck.Event, named string) string {
	if named == "" {
		named, _ = strings.CutPrefix(e.Actor, "agent:")
		if named == e.Actor {
			named = ""
		}
	}
	return label(named)
}

// usage returns the figures by day.
func (f *SummaryFold) usage() []DayUsage {
	out := make([]DayUsage, len(f.s.Days))
	copy(out, f.s.Days) // costs are replaced, never changed
	slices.SortFunc(out, func(a, b DayUsage) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	for i := range out {
		out[i].Round()
	}
	return out
}
