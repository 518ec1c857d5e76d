import { fileURLToPath } from "node:url";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const client = (path: string) => at(`../packages/client/src/${path}`);

/** The screen is built from the sources of the client, so that no package must be built first. tsconfig.json has the same. */
export const alias = [
  { find: /^@\//, replacement: at("./src/") },
  { find: /^@tapedeck\/client$/, replacement: client("index.ts") },
  { find: /^@tapedeck\/client\/fold$/, replacement: client("fold/index.ts") },
  { find: /^@tapedeck\/client\/player$/, replacement: client("player/index.ts") },
  { find: /^@tapedeck\/client\/workflow$/, replacement: client("player/workflow.ts") },
  { find: /^@tapedeck\/client\/testing$/, replacement: client("player/fake.ts") },
  { find: /^@tapedeck\/client\/testing-server$/, replacement: client("server.fake.ts") },
];
