package main

import (
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

func TestSpendingInWords(t *testing.T) {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for want, s := range map[string]tapedeck.Session{
		"nothing used":  {},
		"0 of 5 tokens": {Budget: &tapedeck.Budget{Amount: tapedeck.Amount{Tokens: 5}}},
		"7 of 15 tokens, $0.02, 1m30s": {
			Budget: &tapedeck.Budget{Amount: tapedeck.Amount{Tokens: 5}, Grants: 2},
			Spent:  &tapedeck.Spending{Amount: tapedeck.Amount{Tokens: 7, USD: .02, Seconds: 30}, Since: now.Add(-time.Minute)},
		},
		"$1.00 of $2.50, 3 of 4 model calls, 1s of 1h0m0s": {
			Budget: &tapedeck.Budget{Amount: tapedeck.Amount{USD: 2.5, Turns: 4, Seconds: 3600}},
			Spent:  &tapedeck.Spending{Amount: tapedeck.Amount{USD: 1, Turns: 3, Seconds: 1}},
		},
	} {
		if got := spending(&s, now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
