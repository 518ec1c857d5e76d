// Package agents tests the real program with real coding agents and a scripted model. Run
// it with make real-agents.
package agents
