// Runs route.ts and tapedeck.ts as a framework does: a standard Request in, a standard Response out.
//
//     node server.mjs
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { createServer as createVite } from "vite";

const root = fileURLToPath(new URL(".", import.meta.url));

export async function serve(port, route = "/route.ts") {
  /** The routes of the application, by the file that has them. */
  const fileOf = (path) => (path === "/api/chat" ? route : path.startsWith("/api/chat/") ? "/tapedeck.ts" : undefined);

  const vite = await createVite({
    root,
    configFile: false,
    logLevel: "error",
    appType: "mpa",
    plugins: [react()],
    ssr: { external: ["@tapedeck/ai-sdk", "@tapedeck/client", "ai"] },
    server: { middlewareMode: true, hmr: false, watch: null },
  });
  const http = createServer(async (r, w) => {
    const url = new URL(r.url, `http://${r.headers.host}`);
    const file = fileOf(url.pathname);
    if (!file) return vite.middlewares(r, w);
    const closed = new AbortController();
    w.on("close", () => closed.abort());
    try {
      const routes = await vite.ssrLoadModule(file);
      const body = r.method === "GET" ? null : Readable.toWeb(r);
      const init = { method: r.method, headers: r.headers, body, duplex: "half", signal: closed.signal };
      const answer = await routes[r.method](new Request(url, init));
      w.writeHead(answer.status, Object.fromEntries(answer.headers));
      if (answer.body) await pipeline(Readable.fromWeb(answer.body), w);
      else w.end();
    } catch (error) {
      if (!w.headersSent) w.writeHead(error.status || 502, { "Content-Type": "text/plain" }).end(error.message);
      else w.destroy();
    }
  });
  await new Promise((ok) => http.listen(port, "127.0.0.1", ok));
  return {
    url: `http://127.0.0.1:${http.address().port}`,
    async close() {
      http.closeAllConnections();
      http.close();
      await vite.close();
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log((await serve(3000)).url);
