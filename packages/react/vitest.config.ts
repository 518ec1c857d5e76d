import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const client = (path: string) => fileURLToPath(new URL(`../client/src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^@tapedeck\/client$/, replacement: client("index.ts") },
      { find: /^@tapedeck\/client\/player$/, replacement: client("player/index.ts") },
      { find: /^@tapedeck\/client\/testing$/, replacement: client("server.fake.ts") },
    ],
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.tsx"],
    restoreMocks: true,
    setupFiles: ["../../ui/scripts/test-setup.mjs"],
    testTimeout: 120_000, // test machines can be slow
  },
});
