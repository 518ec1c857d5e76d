import type { ResumableStreamContext } from "resumable-stream";
import { expect, test } from "vitest";
import { createResumableStreamContext } from "./resumable-stream.ts";

test("it has the interface of the package that it replaces", () => {
  const context: ResumableStreamContext = createResumableStreamContext({ url: "http://h", waitUntil: null });
  expect(Object.keys(context)).toEqual([
    "resumableStream",
    "createNewResumableStream",
    "resumeExistingStream",
    "hasExistingStream",
  ]);
});
