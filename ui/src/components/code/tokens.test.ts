import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { languageOf, languageOfFile } from "./language";
import { maxLength, Tokenizer } from "./tokens";
import { withoutNumbers } from "./use-colours";

interface Request {
  id: number;
  text: string;
  language: string;
}

class FakeWorker {
  asked: Request[] = [];
  ended = false;
  onmessage: ((e: MessageEvent) => void) | null = null;
  onerror: ((e: ErrorEvent) => void) | null = null;
  postMessage(m: Request) {
    this.asked.push(m);
  }
  terminate() {
    this.ended = true;
  }
  answer() {
    const { id, text } = this.asked.at(-1)!;
    this.onmessage?.({ data: { id, tokens: Int32Array.of(0, text.length, 1) } } as MessageEvent);
  }
}

const workers: FakeWorker[] = [];
function newTokenizer() {
  workers.length = 0;
  const r = new Tokenizer();
  r.setWorkerFactory(() => {
    workers.push(new FakeWorker());
    return workers.at(-1) as FakeWorker;
  });
  return r;
}
const here = () => new AbortController().signal;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("tokenizing code", () => {
  it("handles one text at a time, each text once", async () => {
    const r = newTokenizer();
    const [a, b, again] = [r.tokenize("a", "go", here()), r.tokenize("b", "go", here()), r.tokenize("a", "go", here())];
    expect(workers[0]?.asked.map((m) => m.text)).toEqual(["a"]);
    workers[0]?.answer();
    expect(await a).toEqual(Int32Array.of(0, 1, 1));
    expect(await again).toBe(await a);
    workers[0]?.answer();
    await b;
    await r.tokenize("a", "go", here());
    expect(workers[0]?.asked.map((m) => m.text)).toEqual(["a", "b"]);
  });

  it("skips a text that no caller needs any more", async () => {
    const r = newTokenizer();
    const gone = new AbortController();
    void r.tokenize("a", "go", here());
    const b = r.tokenize("b", "go", gone.signal);
    void r.tokenize("c", "go", here());
    gone.abort();
    expect(await b).toBeUndefined();
    workers[0]?.answer();
    expect(workers[0]?.asked.map((m) => m.text)).toEqual(["a", "c"]);
    void r.tokenize("b", "go", here()); // needed again
    workers[0]?.answer();
    expect(workers[0]?.asked.at(-1)?.text).toBe("b");
  });

  it("stops after the time limit, and continues with the next text in a new worker", async () => {
    const r = newTokenizer();
    const endless = r.tokenize("a", "go", here());
    const b = r.tokenize("b", "go", here());
    vi.advanceTimersByTime(10_000);
    expect(await endless).toBeUndefined();
    expect(workers.map((t) => t.ended)).toEqual([true, false]);
    workers[1]?.answer();
    expect(await b).toBeDefined();
  });

  it("skips long texts, and all texts if workers are not available", async () => {
    const r = newTokenizer();
    expect(await r.tokenize("x".repeat(maxLength + 1), "go", here())).toBeUndefined();
    expect(await r.tokenize(" \n", "go", here())).toBeUndefined();
    expect(workers).toEqual([]);
    const none = new Tokenizer();
    expect(await none.tokenize("a", "go", here())).toBeUndefined();
    none.setWorkerFactory(() => {
      throw new Error("the policy forbids it");
    });
    expect(await none.tokenize("a", "go", here())).toBeUndefined();
    expect(await none.tokenize("b", "go", here())).toBeUndefined();
  });
});

it("finds languages by their common names", () => {
  expect(["Go", "sh", "TypeScript", "yml", "c++", "constructor", "", undefined].map(languageOf)).toEqual([
    "go",
    "bash",
    "tsx",
    "yaml",
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(["a/b.test.ts", "/x/Dockerfile", "py", "a.b/c", "C:\\x.rs", undefined].map(languageOfFile)).toEqual([
    "tsx",
    "docker",
    "python",
    undefined,
    "rust",
    undefined,
  ]);
});

describe("line numbers", () => {
  it("are removed from the code", () => {
    const text = "10  // Total\n14→func a()\n15\t\n\n";
    const { code, lines } = withoutNumbers(text);
    expect(code).toBe("// Total\nfunc a()\n\n\n");
    for (const { at, from, to } of lines) expect(text.slice(at, at + to - from)).toBe(code.slice(from, to));
  });

  it("are not removed if there are none", () => {
    const text = "a\n1 + 2\nb";
    expect(withoutNumbers(text)).toEqual({ code: text, lines: [{ at: 0, from: 0, to: text.length }] });
  });
});
