// Package agents runs real coding agents, with a scripted model instead of a paid
// one, behind the real program: make real-agents.
package agents
