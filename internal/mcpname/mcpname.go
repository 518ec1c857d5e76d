// Package mcpname has the names by which the MCP client of our agents and our MCP server
// recognize each other.
package mcpname

// Server is the name of our MCP server, as it reports it.
const Server = "tapedeck"

// Session is the member of _meta in a tool call that has the id of the caller's session. Our
// client sends it only to a server with the name [Server], because no other server needs it.
// The model of an agent cannot set it.
const Session = "dev.tapedeck/session"
