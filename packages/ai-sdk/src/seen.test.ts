import { expect, test } from "vitest";
import { type Chunk, ChunkParser, done } from "./chunks.ts";
import { Seen } from "./seen.ts";

const message: Chunk[] = [
  { type: "start", messageId: "m", messageMetadata: { tapedeck: { offset: 2 } } },
  { type: "start-step" },
  { type: "reasoning-start", id: "a" },
  { type: "reasoning-delta", id: "a", delta: "hm" },
  { type: "text-start", id: "a" }, // the same id as the reasoning
  { type: "text-delta", id: "a", delta: "Hel" },
  { type: "reasoning-delta", id: "a", delta: "m…" },
  { type: "text-delta", id: "a", delta: "lo 🙂" },
  { type: "text-end", id: "a" },
  { type: "tool-input-start", toolCallId: "k", toolName: "f" },
  { type: "tool-input-delta", toolCallId: "k", inputTextDelta: '{"q":' },
  { type: "tool-input-delta", toolCallId: "k", inputTextDelta: "1}" },
  { type: "data-note", id: "n", data: 1 },
  { type: "data-note", id: "n", data: 1 }, // twice the same is not once
  { type: "finish" },
];

/** What a server sends that joins the deltas that follow each other. */
function joined(list: Chunk[]): Chunk[] {
  const out: Chunk[] = [];
  for (const c of list) {
    const last = out.at(-1);
    if (last?.type === c.type && c.type.endsWith("-delta") && last.id === c.id)
      out[out.length - 1] =
        c.type === "tool-input-delta"
          ? { ...last, inputTextDelta: last.inputTextDelta! + c.inputTextDelta }
          : { ...last, delta: last.delta! + c.delta };
    else out.push(c);
  }
  return out;
}

test("wherever a stream breaks, however often, each chunk is taken once", () => {
  for (let first = 0; first <= message.length; first++)
    for (let second = 0; second <= message.length; second++) {
      const seen = new Seen();
      const got: Chunk[] = [];
      const send = (list: Chunk[]) => {
        for (const c of list) {
          const fresh = seen.take(c);
          if (fresh) got.push(fresh);
        }
      };
      send(message.slice(0, first));
      seen.restart();
      send(joined(message.slice(0, second)));
      seen.restart();
      send(joined(message));
      expect(joined(got), `${first}, ${second}`).toEqual(joined(message));
      expect(seen.ended).toBe(true);
      expect(seen.message).toBe("m");
    }
});

test("chunks arrive in any pieces", () => {
  const text = new TextEncoder().encode(
    `: comment\n\ndata: {"type":"start"}\n\ndata: {"type":"x","v":"ü"}\n\ndata: [DONE]\n\n`,
  );
  for (let size = 1; size < text.length; size++) {
    const parser = new ChunkParser();
    const got = [];
    for (let i = 0; i < text.length; i += size) got.push(...parser.take(text.subarray(i, i + size)));
    expect(got).toEqual([{ type: "start" }, { type: "x", v: "ü" }, done]);
  }
});

test("what is no chunk is refused with a reason", () => {
  const take = (text: string) => () => new ChunkParser().take(new TextEncoder().encode(text));
  expect(take("data: <html>\n\n")).toThrow("the stream has a chunk that is no JSON");
  expect(take("data: [1]\n\n")).toThrow("the stream has a chunk without a type");
});
