import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["*.test.mjs"],
    testTimeout: 120_000,
    // The files run one after the other, because the tests share a server and a
    // machine may have only two cores.
    fileParallelism: false,
  },
})
