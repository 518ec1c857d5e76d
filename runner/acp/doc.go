// Package acp runs any agent that speaks version 1 of the Agent Client Protocol
// on its standard input and output.
//
// Each invocation is a process of its own, which leads a process group, and a
// conversation of the agent's, which the next invocation resumes, loads, or tells
// anew from the log. docs/agents/acp.md has what is made of what an agent says.
package acp
