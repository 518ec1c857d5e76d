import { TapedeckError } from "@tapedeck/client";
import type { UIMessage } from "ai";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Active, type Unsent } from "./active.ts";
import { Sync, type SyncedChat } from "./sync.ts";
import { TapedeckTransport } from "./transport.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ended = { offset: 7, type: "RUN_FINISHED", invocation: "m", data: {} as object };

/** A chat of a page that is never drawn again, and a session in which a run has ended. */
function begin(answers: (() => Promise<unknown[]>)[], has: UIMessage[] = [], events = [ended]) {
  const errors: TapedeckError[] = [];
  const shown: unknown[] = [];
  const resumed = vi.fn(async () => undefined);
  const chat: SyncedChat = {
    id: "c",
    messages: has,
    status: "ready",
    setMessages: (list) => shown.push(list),
    resumeStream: resumed,
  };
  const active = new Active();
  for (const m of has) active.ended.add(m.id);
  const session = {
    async *follow() {
      yield* events;
      await new Promise(() => undefined);
    },
  };
  const messages = () => (answers.shift() ?? (async () => []))();
  const transport = {
    active: () => active,
    session: () => session,
    messages,
    begun: async () => true,
  } as unknown as TapedeckTransport;
  const sync = new Sync(
    () => transport,
    () => chat,
    { onError: (e) => errors.push(e) },
  );
  sync.start();
  return { sync, chat, shown, errors, resumed };
}

const fails = (kind: string, status: number) => () => Promise.reject(new TapedeckError(kind, "no", { status }));

test("a server that is away when a run ends elsewhere is asked again, until the chat shows the end", async () => {
  const { sync, shown, errors } = begin([fails("unavailable", 503), fails("unreachable", 0), async () => ["all"]]);
  await vi.advanceTimersByTimeAsync(999);
  expect(shown).toEqual([]);
  await vi.advanceTimersByTimeAsync(1 + 2000);
  expect([shown, errors]).toEqual([[["all"]], []]);
  sync.stop();
});

test("a refusal is an error, and is not asked again", async () => {
  const { sync, shown, errors } = begin([fails("forbidden", 403)]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([shown, errors.map((e) => e.kind)]).toEqual([[], ["forbidden"]]);
  sync.stop();
});

test("a page that was removed asks no more", async () => {
  const asked = vi.fn(fails("unavailable", 503));
  const { sync } = begin([asked, asked, asked]);
  await vi.advanceTimersByTimeAsync(500);
  sync.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveBeenCalledTimes(1);
});

test.each([
  ["an earlier attempt, too, is loaded again at its end", "data-attempt", [["all"]]],
  ["all of the run is left alone", "data-note", []],
] as const)("a message that shows %s", async (_, type, want) => {
  const parts = [
    { type: "text", text: "Hel" },
    { type, data: {} },
    { type: "text", text: "Hello" },
  ] as UIMessage["parts"];
  const { sync, shown } = begin([async () => ["all"]], [{ id: "m", role: "assistant", parts }]);
  await vi.advanceTimersByTimeAsync(10);
  expect(shown).toEqual(want);
  sync.stop();
});

test("a run that ends while its page loads the answer to a question is loaded again, also before the page is drawn", async () => {
  const has: UIMessage = {
    id: "m",
    role: "assistant",
    parts: [{ type: "tool-w", toolCallId: "t", state: "approval-requested", input: {}, approval: { id: "q" } }],
  };
  const user = { id: "u", role: "user", parts: [] };
  const whole = { id: "m", role: "assistant", parts: [], metadata: { tapedeck: { next: 8 } } };
  const events = [{ offset: 6, type: "permission.answered", invocation: "m", data: { id: "q" } }, ended];
  const slow = () => new Promise<unknown[]>((ok) => setTimeout(() => ok([user]), 100)); // the run was open then
  const { sync, shown } = begin([slow, async () => [user, whole]], [has], events);
  await vi.advanceTimersByTimeAsync(200);
  expect(shown).toEqual([[user], [user, whole]]);
  sync.stop();
});

test.each([
  ["ready", 0],
  ["error", 1],
])(
  "a chat that is brought up to date when it is %s streams %i times, which clears its error",
  async (status, times) => {
    const { sync, chat, resumed } = begin([async () => []]);
    chat.status = status;
    await vi.advanceTimersByTimeAsync(10);
    expect(resumed).toHaveBeenCalledTimes(times);
    sync.stop();
  },
);

test.each([
  ["leaves the chat when it is online again, and its text comes back", false],
  ["stays if the server has it, because only the answer was lost", true],
])("what a page sends while it is offline %s", async (_, stored) => {
  const said = (id: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text: `text of ${id}` }] });
  const [before, sent] = [said("u1"), said("u2")];
  let online = true;
  const fetch = async (url: unknown) => {
    if (!online) throw new TypeError("fetch failed");
    if (String(url).endsWith("/messages")) return Response.json(stored ? [before, sent] : [before]);
    return new Response(new ReadableStream(), { headers: { "Content-Type": "text/event-stream" } });
  };
  const transport = new TapedeckTransport({ api: `http://server/aisdk/${stored}`, fetch });
  const chat: SyncedChat = {
    id: "c",
    messages: [before],
    status: "ready",
    setMessages: (list) => Object.assign(chat, { messages: list }),
    resumeStream: async () => undefined,
  };
  const unsent: Unsent[] = [];
  const sync = new Sync(
    () => transport,
    () => chat,
    { onUnsent: (u) => unsent.push(u) },
  );
  sync.start();
  await vi.advanceTimersByTimeAsync(10);

  online = false;
  chat.messages = [before, sent];
  const asked = { trigger: "submit-message" as const, messageId: undefined, abortSignal: undefined };
  const sending = transport.sendMessages({ ...asked, chatId: "c", messages: chat.messages });
  await expect(sending).rejects.toMatchObject({ kind: "unreachable" });
  chat.status = "error";
  sync.check(); // as each drawing of the page does
  await vi.advanceTimersByTimeAsync(10_000);
  expect([chat.messages, unsent]).toEqual([[before, sent], []]);

  online = true;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(chat.messages).toEqual(stored ? [before, sent] : [before]);
  expect(unsent.map((u) => [u.message, u.error.kind])).toEqual(stored ? [] : [[sent, "unreachable"]]);
  sync.stop();
});
