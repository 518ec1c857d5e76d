// Package acp runs any agent that speaks version 1 of the Agent Client Protocol on its
// standard input and output.
//
// Each invocation starts a process of its own, which leads a process group. The agent
// keeps the conversation. The next invocation resumes it or loads it. If the agent can
// do neither, the invocation begins a new conversation with the history of the log.
// docs/agents/acp.md says which events an agent's messages become.
package acp
