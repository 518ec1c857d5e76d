import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { PatchBudget, patch, Unpatchable } from "./patch.ts";
import type { Json } from "./types.ts";

// The public test suite of JSON Patch. The server's fold is tested with it, too.

interface Case {
  comment?: string;
  doc: Json;
  patch?: Json;
  expected?: Json;
  error?: string;
  disabled?: boolean;
}

describe.each(["spec_tests.json", "tests.json"])("%s", (name) => {
  const file = new URL(`../../../../view/testdata/jsonpatch/${name}`, import.meta.url);
  const cases = (JSON.parse(readFileSync(file, "utf8")) as Case[])
    .map((c, i) => ({ ...c, title: `${i}: ${c.comment ?? ""}` }))
    .filter((c) => c.patch !== undefined && !c.disabled);

  test.each(cases)("$title", (c) => {
    const applied = () => patch(c.doc, c.patch, new PatchBudget());
    if (c.error !== undefined) expect(applied).toThrow(Unpatchable);
    else if (c.expected === undefined) expect(applied).not.toThrow();
    else expect(applied()).toEqual(c.expected);
  });
});
