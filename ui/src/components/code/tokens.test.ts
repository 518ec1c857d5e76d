import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { languageOf, languageOfFile } from "./language";
import { longest, Reader } from "./tokens";
import { withoutNumbers } from "./use-colours";

interface Asked {
  id: number;
  text: string;
  language: string;
}

class Thread {
  asked: Asked[] = [];
  ended = false;
  onmessage: ((e: MessageEvent) => void) | null = null;
  onerror: ((e: ErrorEvent) => void) | null = null;
  postMessage(m: Asked) {
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

const threads: Thread[] = [];
function reader() {
  threads.length = 0;
  const r = new Reader();
  r.use(() => {
    threads.push(new Thread());
    return threads.at(-1) as Thread;
  });
  return r;
}
const here = () => new AbortController().signal;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("reading code", () => {
  it("is for one text after the other, each once", async () => {
    const r = reader();
    const [a, b, again] = [r.read("a", "go", here()), r.read("b", "go", here()), r.read("a", "go", here())];
    expect(threads[0]?.asked.map((m) => m.text)).toEqual(["a"]);
    threads[0]?.answer();
    expect(await a).toEqual(Int32Array.of(0, 1, 1));
    expect(await again).toBe(await a);
    threads[0]?.answer();
    await b;
    await r.read("a", "go", here());
    expect(threads[0]?.asked.map((m) => m.text)).toEqual(["a", "b"]);
  });

  it("is left out when nobody looks at the text any more", async () => {
    const r = reader();
    const gone = new AbortController();
    void r.read("a", "go", here());
    const b = r.read("b", "go", gone.signal);
    void r.read("c", "go", here());
    gone.abort();
    expect(await b).toBeUndefined();
    threads[0]?.answer();
    expect(threads[0]?.asked.map((m) => m.text)).toEqual(["a", "c"]);
    void r.read("b", "go", here()); // somebody looks again
    threads[0]?.answer();
    expect(threads[0]?.asked.at(-1)?.text).toBe("b");
  });

  it("ends when it takes too long, and goes on with the next text in another thread", async () => {
    const r = reader();
    const endless = r.read("a", "go", here());
    const b = r.read("b", "go", here());
    vi.advanceTimersByTime(10_000);
    expect(await endless).toBeUndefined();
    expect(threads.map((t) => t.ended)).toEqual([true, false]);
    threads[1]?.answer();
    expect(await b).toBeDefined();
  });

  it("is not for long texts, nor where there are no threads", async () => {
    const r = reader();
    expect(await r.read("x".repeat(longest + 1), "go", here())).toBeUndefined();
    expect(await r.read(" \n", "go", here())).toBeUndefined();
    expect(threads).toEqual([]);
    const none = new Reader();
    expect(await none.read("a", "go", here())).toBeUndefined();
    none.use(() => {
      throw new Error("the policy forbids it");
    });
    expect(await none.read("a", "go", here())).toBeUndefined();
    expect(await none.read("b", "go", here())).toBeUndefined();
  });
});

it("knows languages by what people call them", () => {
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

describe("the numbers of lines", () => {
  it("are no code", () => {
    const text = "10  // Total\n14→func a()\n15\t\n\n";
    const { code, lines } = withoutNumbers(text);
    expect(code).toBe("// Total\nfunc a()\n\n\n");
    for (const { at, from, to } of lines) expect(text.slice(at, at + to - from)).toBe(code.slice(from, to));
  });

  it("are not seen where there are none", () => {
    const text = "a\n1 + 2\nb";
    expect(withoutNumbers(text)).toEqual({ code: text, lines: [{ at: 0, from: 0, to: text.length }] });
  });
});
