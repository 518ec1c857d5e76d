package acp

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck/payload"
)

// spending is what the agent has told of its costs. They add up over the life of
// its process.
type spending struct {
	cost, before *float64
	byCall       bool // usage was told for each model call, so that the sum at the end is none but theirs
}

// begin says that what was spent so far is not of this invocation.
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
	return false // how full the context is, is kept as it came
}

// counts are the tokens of one call or of many, in the words of the protocol and
// of those who had none yet.
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

func (k *counts) none() bool {
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
	if json.Unmarshal(raw, &k) == nil && !k.none() {
		c.spent.byCall = true
		c.n.Event(k.usage(""))
	}
}

// spend reports what the agent used, as the answer to the prompt tells: for each
// model if it can, and its cost if that is known.
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
	_ = json.Unmarshal(raw, &end) // what cannot be read is not known
	var used []payload.UsageReported
	for _, m := range end.Meta.Quota.Models {
		if !m.Tokens.none() {
			used = append(used, m.Tokens.usage(m.Model))
		}
	}
	if len(used) == 0 && end.Usage != nil && !end.Usage.none() {
		used = append(used, end.Usage.usage(""))
	}
	if c.spent.byCall {
		used = nil
	}
	if cost := c.spent.here(); cost != nil {
		if len(used) == 0 {
			used = append(used, payload.UsageReported{})
		}
		used[0].CostUSD = cost
	}
	for _, u := range used {
		c.n.Event(u)
	}
}

// here returns what this invocation cost; nil if that is not known.
func (s *spending) here() *float64 {
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
