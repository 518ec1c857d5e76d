import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["*.test.mjs"],
    testTimeout: 30_000,
    // One process and one file at a time: the tests share a server, and two
    // cores are all that can be counted on.
    fileParallelism: false,
  },
})
