// The official clients, each over both transports. They check every answer against the
// protocol, and the data of tools against the schema that the server gave.
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport as OldHTTP } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js"
import { Client as NewClient, StreamableHTTPClientTransport as NewHTTP } from "@modelcontextprotocol/client"
import { StdioClientTransport as NewStdio } from "@modelcontextprotocol/client/stdio"

const who = { name: "conformance", version: "1" }

/** Every combination: a name, and a function that connects a client to a server. */
export function clients(binary, data, url, flags) {
  const command = { command: binary, args: ["mcp", "--data", data, ...flags], stderr: "inherit" }
  const endpoint = new URL("/mcp", url)
  return {
    "SDK 1, HTTP": () => old(new OldHTTP(endpoint)),
    "SDK 1, stdio": () => old(new OldStdio(command)),
    "SDK 2, HTTP, version 2025-11-25": () => recent(new NewHTTP(endpoint)),
    "SDK 2, HTTP, version 2026-07-28": () => recent(new NewHTTP(endpoint), "2026-07-28"),
    "SDK 2, stdio, version 2025-11-25": () => recent(new NewStdio(command)),
    "SDK 2, stdio, version 2026-07-28": () => recent(new NewStdio(command), "2026-07-28"),
  }
}

async function old(transport) {
  const client = new OldClient(who)
  const updates = []
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => updates.push(n.params.uri))
  await client.connect(transport)
  return { client, updates, watch: (uri) => subscribe(client, uri), call: (name, args) => client.callTool({ name, arguments: args }) }
}

async function recent(transport, version) {
  const client = new NewClient(who, version ? { versionNegotiation: { mode: { pin: version } } } : {})
  const updates = []
  client.setNotificationHandler("notifications/resources/updated", (n) => updates.push(n.params.uri))
  await client.connect(transport)
  const watch = async (uri) => {
    if (!version) return subscribe(client, uri)
    const subscription = await client.listen({ resourceSubscriptions: [uri] })
    return () => subscription.close()
  }
  return { client, updates, watch, call: (name, args) => client.callTool({ name, arguments: args }) }
}

async function subscribe(client, uri) {
  await client.subscribeResource({ uri })
  return () => client.unsubscribeResource({ uri })
}
