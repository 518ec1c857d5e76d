package engine

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A tally has the sums of the usage that a run reported, by model, for its terminal
// event.
type tally []payload.TokenUsage

// maxModels is how many models have sums of their own. The usage of all others is
// added up under an empty name.
const maxModels = 64

// maxTokens is the largest count that survives in JavaScript.
const maxTokens = 1<<53 - 1

// add adds a usage.reported. Costs are left out, because AG-UI has none at the end of
// a run.
func (t *tally) add(ev *tapedeck.Event) {
	var d struct{ payload.TokenCounts }
	if json.Unmarshal(ev.Data, &d) != nil {
		return // the log refuses it
	}
	more := counts(&d.TokenCounts)
	if *more[0] == nil && *more[1] == nil && *more[2] == nil {
		return
	}
	sum := counts(t.countsOf(d.Provider, d.Model))
	for i := range sum {
		*sum[i] = plus(*sum[i], *more[i])
	}
}

// countsOf returns the counts of a model.
func (t *tally) countsOf(provider, model string) *payload.TokenCounts {
	if len(*t) >= maxModels {
		provider, model = "", ""
	}
	for i := range *t {
		if k := &(*t)[i].TokenCounts; k.Provider == provider && k.Model == model {
			return k
		}
	}
	*t = append(*t, payload.TokenUsage{TokenCounts: payload.TokenCounts{Provider: provider, Model: model}})
	return &(*t)[len(*t)-1].TokenCounts
}

func counts(k *payload.TokenCounts) [6]**int64 {
	return [...]**int64{&k.InputTokens, &k.OutputTokens, &k.TotalTokens, &k.ReasoningTokens, &k.CachedInputTokens, &k.CacheWriteInputTokens}
}

// plus adds two counts; nil means unknown.
func plus(a, b *int64) *int64 {
	switch {
	case b == nil || *b < 0:
		return a
	case a == nil:
		return new(min(*b, maxTokens))
	}
	return new(min(*a+min(*b, maxTokens), maxTokens))
}

// addTo adds the sums to a terminal event without a usage of its own.
func (t tally) addTo(ev *tapedeck.Event) {
	var d map[string]json.RawMessage
	if len(t) == 0 || json.Unmarshal(ev.Data, &d) != nil || d["usage"] != nil {
		return
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return // impossible: it has only names and numbers
	}
	d["usage"] = raw
	ev.Data = object(d)
}

// withoutUsage returns a terminal event without the usage, which belongs to one run
// only.
func withoutUsage(ev tapedeck.Event) tapedeck.Event {
	var d map[string]json.RawMessage
	if json.Unmarshal(ev.Data, &d) == nil && d["usage"] != nil {
		delete(d, "usage")
		ev.Data = object(d)
	}
	return ev
}
