package view

import (
	"encoding/json"
	"math"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A modelTally sums up the usage of one model.
type modelTally ModelUsage

// A usageReport is the usage of one model in an event.
type usageReport struct {
	payload.TokenCounts
	CostUSD *float64 `json:"costUsd"`
}

func (r *usageReport) tally() modelTally {
	t := Tokens{
		Input: amount(r.InputTokens), Output: amount(r.OutputTokens), Reasoning: amount(r.ReasoningTokens),
		Cached: amount(r.CachedInputTokens), CacheWrite: amount(r.CacheWriteInputTokens),
	}
	if t.Total = plus(t.Input, t.Output); r.TotalTokens != nil {
		t.Total = amount(r.TotalTokens)
	}
	m := modelTally{Provider: label(r.Provider), Model: label(r.Model), Tokens: t}
	if r.CostUSD != nil && *r.CostUSD >= 0 {
		m.CostUSD = addCost(nil, *r.CostUSD)
	}
	return m
}

// readUsage reads the usage in a terminal event, nil if there is none.
func readUsage(raw json.RawMessage) []modelTally {
	var reports []usageReport
	if len(raw) == 0 || !jsonobj.Unpack(raw, &reports) {
		return nil
	}
	var out []modelTally
	for i := range reports {
		out = addTallies(out, []modelTally{reports[i].tally()})
	}
	return out
}

// finalUsage returns the usage of a run from its reports and from its terminal
// event. The terminal event counts, because it includes the reports. AG-UI has
// no cost in it, so the cost of the reports is kept if it has none.
func finalUsage(reported, end []modelTally) []modelTally {
	if len(end) == 0 {
		return reported
	}
	for _, m := range end {
		if m.CostUSD != nil {
			return end
		}
	}
	for _, m := range reported {
		if m.CostUSD != nil {
			end = addTallies(end, []modelTally{{Provider: m.Provider, Model: m.Model, CostUSD: m.CostUSD}})
		}
	}
	return end
}

// addTallies adds more to sum, which it may change.
func addTallies(sum, more []modelTally) []modelTally {
	for _, m := range more {
		i := indexTally(sum, m.Provider, m.Model)
		if i < 0 && len(sum) >= maxModels {
			m.Provider, m.Model = "", ""
			i = indexTally(sum, "", "")
		}
		if i < 0 {
			sum = append(sum, modelTally{Provider: m.Provider, Model: m.Model})
			i = len(sum) - 1
		}
		sum[i].add(m.Tokens)
		if m.CostUSD != nil {
			sum[i].CostUSD = addCost(sum[i].CostUSD, *m.CostUSD)
		}
	}
	return sum
}

func indexTally(tallies []modelTally, provider, model string) int {
	for i := range tallies {
		if tallies[i].Model == model && tallies[i].Provider == provider {
			return i
		}
	}
	return -1
}

func cloneTallies(tallies []modelTally) []modelTally {
	return append([]modelTally(nil), tallies...) // costs are replaced, never changed
}

func (t *Tokens) add(m Tokens) {
	t.Input, t.Output, t.Total = plus(t.Input, m.Input), plus(t.Output, m.Output), plus(t.Total, m.Total)
	t.Cached, t.CacheWrite = plus(t.Cached, m.Cached), plus(t.CacheWrite, m.CacheWrite)
	t.Reasoning = plus(t.Reasoning, m.Reasoning)
}

func addCost(sum *float64, cost float64) *float64 {
	if sum != nil {
		cost += *sum
	}
	if cost > maxCount { // not plausible; infinity is not valid JSON
		cost = maxCount
	}
	return &cost
}

// roundCost rounds a cost, so that the error of binary fractions does not show.
func roundCost(cost *float64) *float64 {
	if cost == nil {
		return nil
	}
	rounded := math.Round(*cost*1e9) / 1e9
	return &rounded
}

func amount(n *int64) int64 {
	if n == nil {
		return 0
	}
	return plus(0, *n)
}

// plus returns a + b, ignoring a negative b, and stops at maxCount.
func plus(a, b int64) int64 {
	if b <= 0 {
		return a
	}
	return min(a, maxCount-min(b, maxCount)) + min(b, maxCount)
}
