package chat

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck/payload"
)

// Usage is the usage of a model call.
type Usage struct {
	payload.TokenCounts
	CostUSD *float64 // the provider's cost; nil if the provider does not report it
}

// parseUsage decodes the usage of a provider; nil if there is none.
func parseUsage(raw json.RawMessage, model string) *Usage {
	var u struct {
		Prompt     *float64 `json:"prompt_tokens"`
		Completion *float64 `json:"completion_tokens"`
		Total      *float64 `json:"total_tokens"`
		Hit        *float64 `json:"prompt_cache_hit_tokens"` // DeepSeek
		Reasoning  *float64 `json:"reasoning_tokens"`        // Azure
		Cost       *float64 `json:"cost"`                    // OpenRouter, in US dollars
		Input      struct {
			Cached     *float64 `json:"cached_tokens"`
			CacheWrite *float64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Output struct {
			Reasoning *float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if !isSet(raw) || json.Unmarshal(raw, &u) != nil || u.Prompt == nil && u.Completion == nil && u.Total == nil {
		return nil
	}
	out := &Usage{CostUSD: u.Cost, TokenCounts: payload.TokenCounts{
		Model: model, InputTokens: count(u.Prompt), OutputTokens: count(u.Completion), TotalTokens: count(u.Total),
		ReasoningTokens: count(u.Output.Reasoning), CacheWriteInputTokens: count(u.Input.CacheWrite),
		CachedInputTokens: count(u.Input.Cached),
	}}
	if out.ReasoningTokens == nil {
		out.ReasoningTokens = count(u.Reasoning)
	}
	if out.CachedInputTokens == nil {
		out.CachedInputTokens = count(u.Hit)
	}
	out.addReasoning()
	return out
}

// addReasoning adds reasoning to the output tokens if the provider, such as xAI, counts it
// separately.
func (u *Usage) addReasoning() {
	in, out, total, thought := u.InputTokens, u.OutputTokens, u.TotalTokens, u.ReasoningTokens
	if in == nil || out == nil || total == nil || thought == nil || *thought == 0 || *total != *in+*out+*thought {
		return
	}
	sum := *out + *thought
	u.OutputTokens = &sum
}

// maxCount is the largest plausible number of tokens. Larger numbers are ignored.
const maxCount = 1 << 50

func count(f *float64) *int64 {
	if f == nil || *f < 0 || *f > maxCount {
		return nil
	}
	n := int64(*f)
	return &n
}
