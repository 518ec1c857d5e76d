import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const client = (path: string) => fileURLToPath(new URL(`../client/src/${path}`, import.meta.url));

function toASCII(part: { type: string; code?: string }): void {
  const escaped = (c: string) => (c < "\x80" ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  if (part.code !== undefined) part.code = part.code.split("").map(escaped).join("");
}

// One script with all that it needs, for a page without a build.
export default defineConfig({
  resolve: {
    alias: [
      { find: /^@tapedeck\/client$/, replacement: client("index.ts") },
      { find: /^@tapedeck\/client\/player$/, replacement: client("player/index.ts") },
      { find: /^@tapedeck\/client\/testing$/, replacement: client("server.fake.ts") },
    ],
  },
  // A page may declare no charset, so the script has no characters beyond ASCII.
  plugins: [{ name: "ascii", generateBundle: (_, bundle) => Object.values(bundle).forEach(toASCII) }],
  build: {
    emptyOutDir: false, // the modules are there already
    target: "es2022",
    lib: { entry: "src/index.ts", formats: ["iife"], name: "tapedeckPlayer", fileName: () => "tapedeck-player.js" },
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.ts"],
    restoreMocks: true,
    testTimeout: 120_000, // test machines can be slow
  },
});
