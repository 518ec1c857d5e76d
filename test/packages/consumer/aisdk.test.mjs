// The chat of the AI SDK 5, 6 and 7 on @tapedeck/ai-sdk, against the real program.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { TapedeckError, TapedeckTransport } from "@tapedeck/ai-sdk";
import { createResumableStreamContext } from "@tapedeck/ai-sdk/resumable-stream";
import { createTapedeck, refusal } from "@tapedeck/ai-sdk/server";
import { createClient, surroundings } from "@tapedeck/client";

const { withServer } = await import(process.env.HARNESS);
const versions = {
  7: [await import("ai"), (await import("ai/test")).MockLanguageModelV4],
  6: [await import("ai-v6"), (await import("ai-v6/test")).MockLanguageModelV3],
  5: [await import("ai-v5"), (await import("ai-v5/test")).MockLanguageModelV2],
};
const words = (n) => Array.from({ length: n }, (_, i) => `w${i}`).join(" ");
const said = (m) => (m?.parts ?? []).map((p) => (p.type === "text" ? p.text : "")).join("");
const shape = (list) =>
  list.map((m) => [m.id, m.role, m.parts.map((p) => [p.type, p.text, p.input, p.output, p.data, p.errorText])]);

/** The chat of useChat, without React. */
function chatOf({ AbstractChat }, id, transport, messages = []) {
  const waiting = new Set();
  const wake = () => {
    for (const f of waiting) f();
  };
  const state = {
    list: messages,
    now: "ready",
    error: undefined,
    get messages() {
      return this.list;
    },
    set messages(list) {
      this.list = list;
      wake();
    },
    get status() {
      return this.now;
    },
    set status(status) {
      this.now = status;
      wake();
    },
    pushMessage: (m) => {
      state.messages = [...state.list, m];
    },
    popMessage: () => {
      state.messages = state.list.slice(0, -1);
    },
    replaceMessage: (i, m) => {
      state.messages = state.list.with(i, structuredClone(m));
    },
    snapshot: (v) => structuredClone(v),
  };
  class Chat extends AbstractChat {}
  const chat = new Chat({ id, transport, state });
  chat.until = (found) =>
    new Promise((done) => {
      const look = () => {
        if (!found(chat)) return;
        waiting.delete(look);
        done();
      };
      waiting.add(look);
      look();
    });
  return chat;
}

/** A fetch whose streams break, also in the middle of a chunk, each time a little later. */
function breaking(bytes) {
  let n = 0;
  return async (url, init) => {
    const answer = await fetch(url, init);
    if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return answer;
    const reader = answer.body.getReader();
    n += bytes;
    let left = n;
    const body = new ReadableStream({
      async pull(c) {
        const { done, value } = left > 0 ? await reader.read() : {};
        if (done) return c.close();
        if (!value) {
          await reader.cancel();
          throw new TypeError("terminated");
        }
        c.enqueue(value.subarray(0, left));
        left -= Math.min(left, value.length);
      },
      cancel: (why) => reader.cancel(why),
    });
    return new Response(body, { status: answer.status, headers: answer.headers });
  };
}

/** A model that says words until it is told to go on, and then the rest. */
function modelOf(Mock, version, { before, after, wait, onAbort }) {
  const usage =
    version === 5
      ? { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
      : { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const finishReason = version === 5 ? "stop" : { unified: "stop", raw: "stop" };
  return new Mock({
    doStream: async ({ abortSignal }) => ({
      stream: new ReadableStream({
        async start(c) {
          abortSignal?.addEventListener("abort", () => onAbort?.());
          c.enqueue({ type: "stream-start", warnings: [] });
          c.enqueue({ type: "text-start", id: "0" });
          for (const delta of before) c.enqueue({ type: "text-delta", id: "0", delta });
          await wait;
          for (const delta of after) c.enqueue({ type: "text-delta", id: "0", delta });
          c.enqueue({ type: "text-end", id: "0" });
          c.enqueue({ type: "finish", finishReason, usage });
          c.close();
        },
      }),
    }),
  });
}

/** The fetch of a page whose /chat is a route of this program. */
const routed = (POST, routes) => (url, init) => {
  const request = new Request(url, { ...init, duplex: "half" });
  const { pathname } = new URL(url);
  if (pathname === "/chat") return POST(request);
  return request.method === "POST" ? routes.POST(request) : routes.GET(request);
};

for (const [name, [ai, Mock]] of Object.entries(versions)) {
  const version = Number(name);
  const timeout = 120_000;
  const transportOf = (server, more = {}) =>
    new TapedeckTransport({ api: `${server.url}/aisdk/hello`, version, ...more });
  const steps = [
    { turn: true },
    { think: "Let me think about it", rate: 200 },
    { say: words(30), rate: 200 },
    { tool: "search", args: { q: 1, text: "a long query" }, ms: 20, result: { found: [42] } },
    { plan: [{ content: "Look", status: "completed" }] },
    { turn: true },
    { say: "Done.", rate: 60 },
  ];

  test(`AI SDK ${name}: each chunk arrives once, however often the connection breaks`, { timeout }, () =>
    withServer(process.env.TAPEDECK_BIN, ["--demo"], async (server) => {
      const reconnects = [];
      const environment = { ...surroundings, setTimeout: (f, ms) => setTimeout(f, Math.min(ms, 5)), random: () => 0 };
      const onReconnect = (r) => r && reconnects.push(r.error.message);
      const transport = transportOf(server, { fetch: breaking(150), environment, onReconnect, stallMs: 0 });
      const chat = chatOf(ai, `c-${randomUUID()}`, transport);
      await chat.sendMessage({ text: "go" }, { body: { config: { steps } } });
      assert.equal(chat.error, undefined);
      assert.equal(said(chat.messages.at(-1)), `${words(30)}Done.`);
      assert.deepEqual(shape(chat.messages), shape(await transport.messages(chat.id)));
      assert.ok(reconnects.length > 5, `${reconnects.length} reconnects`);
    }),
  );

  test(`AI SDK ${name}: a kill of the server ends its run on the page as in the log`, { timeout }, () =>
    withServer(process.env.TAPEDECK_BIN, ["--demo"], async (server) => {
      const transport = transportOf(server);
      const chat = chatOf(ai, `c-${randomUUID()}`, transport);
      const sent = chat.sendMessage({ text: "go" }, { body: { config: { steps: [{ say: words(400), rate: 60 }] } } });
      await chat.until((c) => said(c.messages.at(-1)).includes("w20 "));
      await server.restart();
      await sent;
      assert.match(chat.error.message, /restart|killed|stopped/);
      assert.deepEqual(shape(chat.messages), shape(await transport.messages(chat.id)));
    }),
  );

  test(`AI SDK ${name}: an agent elsewhere survives a kill of the server`, { timeout }, () =>
    withServer(process.env.TAPEDECK_BIN, [], async (server) => {
      let goOn;
      const wait = new Promise((done) => {
        goOn = done;
      });
      const model = modelOf(Mock, version, { before: ["It ", "is "], after: ["21 ", "°C."], wait });
      const td = createTapedeck({ url: server.url });
      const POST = async (request) => {
        const { id, messages } = await request.json();
        const run = await td.run(id, { messages, headers: request.headers });
        return run.respond(ai.streamText({ model, prompt: "Weather?", abortSignal: run.signal }));
      };
      const routes = td.routes({ authorize: (_, id) => id.startsWith("mine-") });
      const fetch = routed(POST, routes);
      const transport = new TapedeckTransport({ api: "http://page.example/chat", version, fetch });
      const chat = chatOf(ai, `mine-${randomUUID()}`, transport);
      const sent = chat.sendMessage({ text: "Weather?" });
      await chat.until((c) => said(c.messages.at(-1)).includes("is "));
      const second = chatOf(ai, chat.id, transport, await transport.messages(chat.id));
      assert.deepEqual(second.messages.map(said), ["Weather?"]);
      const resumed = second.resumeStream();
      await second.until((c) => said(c.messages.at(-1)) === "It is ");
      await server.restart();
      goOn();
      await Promise.all([sent, resumed]);
      for (const page of [chat, second]) {
        assert.equal(page.error, undefined);
        assert.equal(said(page.messages.at(-1)), "It is 21 °C.");
        assert.deepEqual(shape(page.messages), shape(await transport.messages(chat.id)));
      }
      await assert.rejects(transport.messages("other"), (e) => e instanceof TapedeckError && e.kind === "forbidden");
    }),
  );

  test(`AI SDK ${name}: a stop from elsewhere reaches the model`, { timeout }, () =>
    withServer(process.env.TAPEDECK_BIN, [], async (server) => {
      let aborted;
      const heard = new Promise((done) => {
        aborted = done;
      });
      const never = new Promise(() => undefined);
      const model = modelOf(Mock, version, {
        before: ["on ", "and "],
        after: [],
        wait: never,
        onAbort: () => aborted(),
      });
      const td = createTapedeck({ url: server.url });
      const POST = async (request) => {
        const { id, messages } = await request.json();
        const run = await td.run(id, { messages, headers: request.headers });
        return run.respond(ai.streamText({ model, prompt: "Go", abortSignal: run.signal }));
      };
      const fetch = routed(POST, td.routes({ authorize: () => true }));
      const transport = new TapedeckTransport({ api: "http://page.example/chat", version, fetch });
      const chat = chatOf(ai, `c-${randomUUID()}`, transport);
      const sent = chat.sendMessage({ text: "Go" });
      await chat.until((c) => said(c.messages.at(-1)).includes("and "));
      const busy = await td.run(chat.id, { messages: [...chat.messages, message("Me, too")] }).catch((e) => e);
      assert.equal(busy.kind, "conflict");
      await createClient({ url: server.url }).session(chat.id).cancel();
      await Promise.all([sent, heard]);
      assert.equal(chat.status, "ready");
      const loaded = await td.messages(chat.id);
      assert.deepEqual([said(loaded[1]), loaded[1].metadata.tapedeck.status], ["on and ", "cancelled"]);
      assert.equal(await transport.stop(chat.id), false); // nothing runs any more
    }),
  );
}

/** A model that asks for the weather when a user has spoken, and otherwise says words, with a stop before the last. */
function askingModel(Mock, wait) {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  return new Mock({
    doStream: async ({ prompt }) => ({
      stream: new ReadableStream({
        async start(c) {
          const asks = prompt.at(-1).role === "user";
          c.enqueue({ type: "stream-start", warnings: [] });
          c.enqueue({ type: "text-start", id: "0" });
          c.enqueue({ type: "text-delta", id: "0", delta: asks ? "Let me look. " : "It is " });
          if (!asks) await wait;
          if (!asks) c.enqueue({ type: "text-delta", id: "0", delta: "cold." });
          c.enqueue({ type: "text-end", id: "0" });
          if (asks)
            c.enqueue({ type: "tool-call", toolCallId: `call-${prompt.length}`, toolName: "weather", input: "{}" });
          const why = asks ? "tool-calls" : "stop";
          c.enqueue({ type: "finish", finishReason: { unified: why, raw: why }, usage });
          c.close();
        },
      }),
    }),
  });
}

for (const name of ["7", "6"])
  for (const approved of [true, false])
    test(
      `AI SDK ${name}: ${approved ? "yes" : "no"} in a route is one message, as without Tapedeck`,
      { timeout: 120_000 },
      () =>
        withServer(process.env.TAPEDECK_BIN, [], async (server) => {
          const [ai, Mock] = versions[name];
          const version = Number(name);
          let used = 0;
          const execute = async () => {
            used++;
            return { celsius: 7 };
          };
          const weather = ai.tool({ inputSchema: ai.jsonSchema({ type: "object" }), execute, needsApproval: true });
          const agent = (wait) => ({ model: askingModel(Mock, wait), tools: { weather } });
          const until = ai.lastAssistantMessageIsCompleteWithApprovalResponses;
          const part = (chat) => chat.messages.at(-1)?.parts.find((p) => p.type === "tool-weather");
          const asked = (chat) => chat.status === "ready" && part(chat)?.state === "approval-requested";
          const over = (chat) => chat.status === "ready" && said(chat.messages.at(-1)).endsWith("cold.");
          const parts = (chat) => chat.messages.map((m) => m.parts.map((p) => [p.type, p.state, p.text, p.output]));

          const plain = async (_, init) => {
            const messages = await ai.convertToModelMessages(JSON.parse(init.body).messages);
            return ai.streamText({ ...agent(), messages }).toUIMessageStreamResponse();
          };
          const control = chatOf(
            ai,
            "control",
            new ai.DefaultChatTransport({ api: "http://page.example/", fetch: plain }),
          );
          control.sendAutomaticallyWhen = until;
          await control.sendMessage({ text: "Weather?" });
          await control.addToolApprovalResponse({ id: part(control).approval.id, approved });
          await control.until(over);
          used = 0;

          let goOn;
          const wait = new Promise((done) => {
            goOn = done;
          });
          const td = createTapedeck({ url: server.url });
          const POST = async (request) => {
            const { id, messages } = await request.json();
            const run = await td.run(id, { messages, headers: request.headers }).catch(refusal);
            if (run instanceof Response) return run;
            return run.respond(ai.streamText({ ...agent(wait), messages: await ai.convertToModelMessages(messages) }));
          };
          const fetch = routed(POST, td.routes({ authorize: () => true }));
          const transport = new TapedeckTransport({ api: "http://page.example/chat", version, fetch });
          const page = async () => {
            const chat = chatOf(ai, "chat", transport, await transport.messages("chat"));
            chat.sendAutomaticallyWhen = until;
            return chat;
          };
          const first = await page();
          await first.sendMessage({ text: "Weather?" });
          assert.ok(asked(first));
          const second = await page(); // it will answer too late
          await first.addToolApprovalResponse({ id: part(first).approval.id, approved });
          await first.until((c) => said(c.messages.at(-1)).includes("It is "));
          const third = await page();
          assert.deepEqual(
            third.messages.map((m) => m.role),
            ["user"],
          );
          const resumed = third.resumeStream();
          await third.until((c) => said(c.messages.at(-1)).includes("It is "));
          goOn();
          await Promise.all([first.until(over), resumed]);
          await second.addToolApprovalResponse({ id: part(second).approval.id, approved: true });
          await second.until((c) => c.status === "error");
          assert.equal(second.error.kind, "conflict");
          assert.equal(used, approved ? 1 : 0);
          for (const chat of [first, third, await page()]) {
            assert.equal(chat.error, undefined);
            assert.deepEqual(parts(chat), parts(control));
          }
        }),
    );

const message = (text) => ({ id: randomUUID(), role: "user", parts: [{ type: "text", text }] });

/** Chunks of all kinds: what is recorded in a route is what the server records that gets them. */
const everything = [
  { type: "start", messageId: "theirs" },
  { type: "start-step" },
  { type: "reasoning-start", id: "0" },
  { type: "reasoning-delta", id: "0", delta: "Let me think" },
  { type: "reasoning-end", id: "0" },
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "It is " },
  { type: "text-delta", id: "0", delta: "🙂" },
  { type: "tool-input-start", toolCallId: "a", toolName: "find" },
  { type: "tool-input-delta", toolCallId: "a", inputTextDelta: '{"q":' },
  { type: "tool-input-delta", toolCallId: "a", inputTextDelta: "1}" },
  { type: "tool-input-available", toolCallId: "a", toolName: "find", input: { q: 1 } },
  { type: "tool-output-available", toolCallId: "a", output: "soon", preliminary: true },
  { type: "tool-output-available", toolCallId: "a", output: { found: [1, "x"] } },
  { type: "text-end", id: "0" },
  { type: "finish-step" },
  { type: "start-step" },
  { type: "tool-input-available", toolCallId: "b", toolName: "find", input: "text" },
  { type: "tool-output-error", toolCallId: "b", errorText: "no" },
  { type: "tool-input-error", toolCallId: "c", toolName: "find", input: {}, errorText: "bad" },
  { type: "tool-input-available", toolCallId: "d", toolName: "rm", input: {} },
  { type: "tool-output-denied", toolCallId: "d" },
  { type: "source-url", sourceId: "s", url: "https://example.org" },
  { type: "file", url: "data:image/png;base64,iVBORw0KGgo=", mediaType: "image/png" },
  { type: "data-note", id: "n", data: { a: 1 } },
  { type: "data-note", id: "n", data: { a: 2 } },
  { type: "data-hint", data: 1, transient: true },
  { type: "data-hint", transient: true },
  { type: "steering-message", id: "u9", parts: [{ type: "text", text: "Hurry" }] },
  { type: "a-type-of-later" },
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "Done" },
];
const ends = {
  finish: [{ type: "finish", finishReason: "stop" }],
  approval: [
    { type: "tool-input-available", toolCallId: "e", toolName: "rm", input: { a: 1 } },
    { type: "tool-approval-request", approvalId: "q", toolCallId: "e" },
    { type: "finish" },
  ],
  abort: [{ type: "abort" }],
  error: [{ type: "error", errorText: "the model is away" }],
  "nothing more": [],
};

test("a route records the same events as the server", { timeout: 60_000 }, () =>
  withServer(process.env.TAPEDECK_BIN, [], async (server) => {
    const client = createClient({ url: server.url });
    const td = createTapedeck({ url: server.url });
    for (const [name, end] of Object.entries(ends)) {
      const chunks = [...everything, ...end];
      const question = { id: "u1", role: "user", parts: [{ type: "text", text: "What?" }] };
      const [here, there] = [`here-${name.replace(" ", "-")}`, `there-${name.replace(" ", "-")}`];
      const run = await td.run(here, { messages: [question] });
      await (await run.respond(ReadableStream.from(chunks))).text();
      const post = (path, type, body) =>
        fetch(`${server.url}/aisdk/web/${there}/${path}`, { method: "POST", headers: { "Content-Type": type }, body });
      await post("messages", "application/json", JSON.stringify({ messages: [question] }));
      const stream = chunks.map((c) => `data: ${JSON.stringify(c)}\n\n`).join("");
      await (await post("events", "text/event-stream", stream)).text();
      const [a, b] = [await eventsOf(client, here, run.id), await eventsOf(client, there, "theirs")];
      assert.deepEqual(a, b, name);
      assert.ok(a.length > 30);
    }
  }),
);

/** The events of a run after the message of the user, without what differs from run to run, and with joined deltas. */
async function eventsOf(client, id, run) {
  const list = [];
  for await (const { offset, timestamp, metadata, ...e } of client.session(id).events({ from: 2 })) {
    const { metadata: about, ...data } = e.data;
    const text = JSON.stringify({ ...e, data }).replaceAll(run, "RUN");
    const event = JSON.parse(text);
    const last = list.at(-1);
    if (last?.type === event.type && event.data.delta !== undefined) last.data.delta += event.data.delta;
    else list.push(event);
  }
  return list;
}

test("an error of an agent has no secrets, unless the route says so", { timeout: 60_000 }, () =>
  withServer(process.env.TAPEDECK_BIN, [], async (server) => {
    const td = createTapedeck({ url: server.url });
    const logged = [];
    const { error } = console;
    console.error = (e) => logged.push(e.message);
    try {
      for (const [id, options, want] of [
        ["masked", {}, "An error occurred."],
        ["named", { onError: () => "The model is away." }, "The model is away."],
      ]) {
        const run = await td.run(id, { messages: [message("hi")] });
        async function* agent() {
          yield { type: "start" };
          throw new Error("model key sk-123 broke");
        }
        const page = await (await run.respond(agent(), options)).text();
        let log = "";
        for await (const e of createClient({ url: server.url }).session(id).events()) log += JSON.stringify(e);
        for (const text of [page, log]) {
          assert.ok(text.includes(want), text);
          assert.ok(!text.includes("sk-123"), text);
        }
      }
    } finally {
      console.error = error;
    }
    assert.deepEqual(logged, ["model key sk-123 broke"]);
  }),
);

test("the drop-in for resumable-stream: readers at any time, through a kill of the server", { timeout: 60_000 }, () =>
  withServer(process.env.TAPEDECK_BIN, [], async (server) => {
    const context = createResumableStreamContext({ url: server.url, waitUntil: null });
    let c;
    const make = () =>
      new ReadableStream({
        start(given) {
          c = given;
        },
      });
    const all = async (stream) => {
      let text = "";
      for await (const piece of stream) text += piece;
      return text;
    };
    assert.equal(await context.hasExistingStream("s"), null);
    assert.equal(await context.resumeExistingStream("s"), undefined);
    const first = all(await context.resumableStream("s", make));
    c.enqueue("Hällo, ");
    const second = await context.resumableStream("s", () => assert.fail("it is made once"));
    const reader = second.getReader();
    assert.equal((await reader.read()).value, "Hällo, ");
    reader.releaseLock();
    await server.restart();
    c.enqueue("wörld");
    const third = all(await context.resumeExistingStream("s", 3));
    assert.equal(await context.hasExistingStream("s"), true);
    c.close();
    assert.deepEqual(await Promise.all([first, all(second), third]), ["Hällo, wörld", "wörld", "lo, wörld"]);
    assert.equal(await context.hasExistingStream("s"), "DONE");
    assert.equal(await context.resumableStream("s", make), null);
  }),
);
