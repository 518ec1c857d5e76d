package main

import (
	"slices"

	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/runner/script"
)

// scriptAgents returns the agents that play a script, for a first look, for tests
// and for demos. The first one is the default.
func scriptAgents() []deck.Agent {
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
		r := script.New(script.Options{Script: name})
		kind, description := r.Describe()
		agents = append(agents, deck.Agent{Name: name, Kind: kind, Description: description, Runner: r})
	}
	return agents
}
