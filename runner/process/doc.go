// Package process runs agents that are programs without a screen, which tell what
// they do in JSON, one object a line.
//
// Each invocation is a process of its own, which leads a process group. What its
// lines mean is a dialect's to know; docs/agents/process.md has them all, and how
// to describe one that is not there.
package process
