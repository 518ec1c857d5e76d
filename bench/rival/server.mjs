// This program starts the reference server, in memory or with a folder, and prints its URL.
import { DurableStreamTestServer } from "@durable-streams/server"

const dataDir = process.argv[2]
const server = new DurableStreamTestServer({ port: 0, host: "127.0.0.1", longPollTimeout: 500, ...(dataDir ? { dataDir } : {}) })
await server.start()
console.log(JSON.stringify({ url: server.url, pid: process.pid }))
