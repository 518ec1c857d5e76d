import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    alias: [
      {
        find: /^@tapedeck\/client\/record$/,
        replacement: fileURLToPath(new URL("../client/src/record/index.ts", import.meta.url)),
      },
      {
        find: /^@tapedeck\/client$/,
        replacement: fileURLToPath(new URL("../client/src/index.ts", import.meta.url)),
      },
    ],
  },
  test: {
    environment: "node",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    testTimeout: 30_000, // test machines can be slow
  },
});
