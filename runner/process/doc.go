// Package process runs agents that are programs without a screen. Such a program
// reports its work in JSON, one object per line.
//
// Each invocation starts a process of its own, which leads a process group. A
// dialect defines the meaning of the lines. docs/agents/process.md lists the
// dialects and explains how to describe a new one.
package process
