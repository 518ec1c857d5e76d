/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The proxy gives the page and the server one origin.
const server = process.env.TAPEDECK_URL ?? "http://127.0.0.1:4747";

export default defineConfig({
  plugins: [react()],
  server: { proxy: { "/api": { target: server, changeOrigin: true, headers: { origin: server } } } },
  test: { environment: "jsdom", include: ["*.test.tsx"], testTimeout: 120_000 },
});
