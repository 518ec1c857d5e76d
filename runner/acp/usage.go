package acp

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck/payload"
)

// spending is the usage and cost that the agent reported. The cost is the sum over the
// life of its process.
type spending struct {
	cost, before *float64 // cost now, and when the invocation began; nil if unknown
	byCall       bool     // usage was reported for each model call, so the total at the end is ignored
}

// begin excludes the cost so far from this invocation.
func (s *spending) begin() { s.before = s.cost }

func (c *conversation) spentSoFar(u json.RawMessage) bool {
	var d struct {
		Cost *struct {
			Amount   float64 `json:"amount"`
			Currency string  `json:"currency"`
		} `json:"cost"`
	}
	if json.Unmarshal(u, &d) == nil && d.Cost != nil && d.Cost.Currency == "USD" {
		c.spent.cost = &d.Cost.Amount
	}
	return false // the line also has the size of the context, so it is kept as RAW
}

// counts has the tokens of one or more model calls, with the member names of the
// protocol and of agents that predate it.
type counts struct {
	Input      *int64 `json:"inputTokens"`
	Output     *int64 `json:"outputTokens"`
	Total      *int64 `json:"totalTokens"`
	Thought    *int64 `json:"thoughtTokens"`
	CacheRead  *int64 `json:"cachedReadTokens"`
	CacheWrite *int64 `json:"cachedWriteTokens"`

	InputSnake  *int64 `json:"input_tokens"`
	OutputSnake *int64 `json:"output_tokens"`

	Cached       *int64 `json:"cachedInputTokens"`
	CachedWrites *int64 `json:"cacheWriteInputTokens"`
	Reasoning    *int64 `json:"reasoningOutputTokens"`
}

func (k *counts) usage(model string) payload.UsageReported {
	return payload.UsageReported{TokenCounts: payload.TokenCounts{
		Model: model, InputTokens: first(k.Input, k.InputSnake), OutputTokens: first(k.Output, k.OutputSnake), TotalTokens: k.Total,
		ReasoningTokens: first(k.Thought, k.Reasoning), CachedInputTokens: first(k.CacheRead, k.Cached),
		CacheWriteInputTokens: first(k.CacheWrite, k.CachedWrites),
	}}
}

func (k *counts) isZero() bool {
	u := k.usage("")
	for _, n := range []*int64{u.InputTokens, u.OutputTokens, u.TotalTokens} {
		if n != nil && *n != 0 {
			return false
		}
	}
	return true
}

func first(values ...*int64) *int64 {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

func (c *conversation) usedByCall(raw json.RawMessage) {
	var k counts
	if json.Unmarshal(raw, &k) == nil && !k.isZero() {
		c.spent.byCall = true
		c.n.Event(k.usage(""))
	}
}

// spend reports the usage from the answer to the prompt, for each model if the answer
// has that, and the cost if it is known.
func (c *conversation) spend(raw json.RawMessage) {
	var end struct {
		Usage *counts `json:"usage"`
		Meta  struct {
			Quota struct {
				Models []struct {
					Model  string `json:"model"`
					Tokens counts `json:"token_count"`
				} `json:"model_usage"`
			} `json:"quota"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(raw, &end) // usage that cannot be decoded is unknown
	var used []payload.UsageReported
	for _, m := range end.Meta.Quota.Models {
		if !m.Tokens.isZero() {
			used = append(used, m.Tokens.usage(m.Model))
		}
	}
	if len(used) == 0 && end.Usage != nil && !end.Usage.isZero() {
		used = append(used, end.Usage.usage(""))
	}
	if c.spent.byCall {
		used = nil
	}
	if cost := c.spent.ofInvocation(); cost != nil {
		if len(used) == 0 {
			used = append(used, payload.UsageReported{})
		}
		used[0].CostUSD = cost
	}
	for _, u := range used {
		c.n.Event(u)
	}
}

// ofInvocation returns the cost of this invocation; nil if it is unknown.
func (s *spending) ofInvocation() *float64 {
	if s.cost == nil {
		return nil
	}
	cost := *s.cost
	if s.before != nil {
		cost -= *s.before
	}
	if cost <= 0 {
		return nil
	}
	return &cost
}
