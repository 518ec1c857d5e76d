package main

import (
	"slices"

	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/runner/script"
)

// scriptLimits are what a run of a script may do on a server with access control, where
// users send steps of their own and none of them may fill the disk.
var scriptLimits = script.Limits{Steps: 20_000, Bytes: 16 << 20}

// scriptAgents returns the agents that play a script, for a first look, for tests
// and for demos. The first one is the default.
func scriptAgents(limits script.Limits) []deck.Agent {
	names := script.Names()
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == "coder":
			return -1
		case b == "coder":
			return 1
		}
		return 0
	})
	var agents []deck.Agent
	for _, name := range names {
		r := script.New(script.Options{Script: name, Limits: limits})
		kind, description := r.Describe()
		agents = append(agents, deck.Agent{Name: name, Kind: kind, Description: description, Runner: r})
	}
	return agents
}
