package api

import "github.com/tapedeck/tapedeck/view"

// Usage is what the ended runs of sessions used between two days: in all, by day, by agent
// and by model.
type Usage struct {
	From string `json:"from,omitempty"` // the first day, in UTC; absent without a limit
	To   string `json:"to,omitempty"`   // the last day

	Sessions int          `json:"sessions"` // the number of sessions that used something
	Total    view.Used    `json:"total"`
	Days     []UsageDay   `json:"days"`   // by time; of more than 1000 the newest
	Agents   []UsageAgent `json:"agents"` // the most tokens first, at most 1000
	Models   []UsageModel `json:"models"` // the most tokens first, at most 1000
}

// UsageDay is the usage of one day, in UTC.
type UsageDay struct {
	Day string `json:"day"`
	view.Used
}

// UsageAgent is the usage of one agent.
type UsageAgent struct {
	Agent string `json:"agent"` // "" if the log does not tell
	view.Used
}

// UsageModel is the usage of one model.
type UsageModel struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model"` // "" if none was reported
	view.Used
}
