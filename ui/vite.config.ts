/// <reference types="vitest/config" />
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { alias } from "./alias.ts";
import { stamp } from "./scripts/stamp.mjs";

// The API for `npm run dev`. A proxy gives the page and the API one origin.
const server = process.env.TAPEDECK_URL ?? "http://127.0.0.1:4747";

export default defineConfig({
  plugins: [react(), tailwindcss(), stamp()],
  resolve: { alias },
  worker: { format: "es" },
  build: {
    outDir: process.env.DIST ?? "../web/dist", // make ui-build compares another folder with it
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    reportCompressedSize: false,
    assetsInlineLimit: 0, // a data: URL is one more thing for the policy to allow
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      // The server refuses requests from other origins, so the proxy sets the server's own.
      "/api": { target: server, changeOrigin: true, headers: { origin: server } },
    },
  },
  test: {
    environment: "node",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    setupFiles: ["scripts/test-setup.mjs"],
    testTimeout: 120_000, // test machines can be slow
  },
});
