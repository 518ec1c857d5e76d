import { expect, test } from "vitest";
import type { NewEvent } from "../wire.ts";
import { Outbox } from "./outbox.ts";

const delta = (text: string, messageId = "m", turn = 0): NewEvent => ({
  type: "TEXT_MESSAGE_CONTENT",
  turn,
  data: { messageId, delta: text },
});
const note: NewEvent = { type: "acme.note", data: {} };

/** An outbox whose appends wait for `go`. */
function held() {
  const appends: NewEvent[][] = [];
  let go: (error?: unknown) => void = () => undefined;
  const box = new Outbox(
    (events) => {
      appends.push(structuredClone(events));
      return new Promise<void>((done, fail) => {
        go = (error) => (error === undefined ? done() : fail(error));
      });
    },
    async (error) => error,
  );
  const answer = async (error?: unknown) => {
    go(error);
    await new Promise((r) => setImmediate(r));
  };
  return { box, appends, answer };
}

const texts = (events: NewEvent[] = []) => events.map((e) => (e.data as { delta?: string }).delta ?? e.type);

test("what comes during an append shares the next one, and the deltas of a message are joined", async () => {
  const { box, appends, answer } = held();
  await box.put([delta("a")]);
  expect(appends.map(texts)).toEqual([["a"]]);
  const more = [delta("b"), delta("c"), delta("d", "n"), note, delta("e", "n"), delta("f", "n", 1)];
  for (const e of more) await box.put([e]);
  await answer();
  expect(appends.map(texts)).toEqual([["a"], ["bc", "d", "acme.note", "e", "f"]]);
});

test("an append has at most 2000 events, and an event at most a megabyte of deltas", async () => {
  const { box, appends, answer } = held();
  await box.put(Array(4500).fill(note));
  for (let i = 0; i < 3; i++) await answer();
  expect(appends.map((a) => a.length)).toEqual([2000, 2000, 500]);
  await answer();
  const half = "x".repeat(700_000);
  await box.put([delta(half), delta(half), delta(half)]);
  for (let i = 0; i < 3; i++) await answer();
  expect(appends.slice(3).map((a) => a.length)).toEqual([1, 1, 1]);
});

test("a writer waits while four million characters are pending, and no longer", async () => {
  const { box, answer } = held();
  const steps: string[] = [];
  const mega = "x".repeat(1_100_000);
  await box.put([delta(mega), delta(mega), delta(mega)]);
  steps.push("three");
  const fifth = box.put([delta(mega), delta(mega)]).then(() => steps.push("five"));
  await new Promise((r) => setImmediate(r));
  expect(steps).toEqual(["three"]);
  for (let i = 0; i < 6; i++) await answer();
  await fifth;
  expect(steps).toEqual(["three", "five"]);
});

test("after a refusal nothing is sent, and every call says why", async () => {
  const { box, appends, answer } = held();
  await box.put([note]);
  await box.put([delta("lost")]);
  const waiting = box.flush();
  waiting.catch(() => undefined);
  await answer(new Error("no such event"));
  await expect(waiting).rejects.toThrow("no such event");
  await expect(box.put([note])).rejects.toThrow("no such event");
  expect(appends).toHaveLength(1);
});
