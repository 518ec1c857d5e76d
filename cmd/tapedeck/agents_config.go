package main

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/runner/script"
)

// scriptAgents are the agents that every server has: scripts that play an
// agent, for a first look, for tests and for demos. The first is the default.
func scriptAgents() []engine.Agent {
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
	var agents []engine.Agent
	for _, name := range names {
		r := script.New(script.Options{Script: name})
		kind, description := r.Describe()
		agents = append(agents, engine.Agent{Agent: tapedeck.Agent{Name: name, Kind: kind, Description: description}, Runner: r})
	}
	return agents
}
