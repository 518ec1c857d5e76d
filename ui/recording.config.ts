import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { alias } from "./alias.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// The page of a recording is one file with its events: one classic script and one
// style, and no files loaded later.
export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: { alias },
  define: { "process.env.NODE_ENV": '"production"' },
  publicDir: false,
  build: {
    outDir: `${process.env.DIST ?? "../web/dist"}/recording`,
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    reportCompressedSize: false,
    cssCodeSplit: false,
    lib: {
      entry: at("./src/recording/main.tsx"),
      formats: ["iife"],
      name: "tapedeckRecording",
      fileName: () => "player.js",
      cssFileName: "player",
    },
  },
});
