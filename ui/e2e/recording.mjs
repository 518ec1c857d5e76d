// Generates long sessions for checks that depend on length: an agent that thinks,
// writes Markdown and uses tools, about thirty events a second.
const began = Date.UTC(2026, 0, 5, 9);
const eventMs = 30;
const words = Array.from({ length: 40 }, (_, i) =>
  i % 10 === 4 ? "**bold words** and " : i % 10 === 9 ? "`code()` and " : `some words ${i} `,
);

/** The export of a session with about `wanted` events, and its number of turns. */
export function recording(id, wanted) {
  const lines = [];
  let invocation;
  let ms = began;
  const add = (type, data, more = {}) => {
    ms += eventMs;
    const head = { offset: lines.length, type, channel: channelOf(type), timestamp: new Date(ms).toISOString() };
    lines.push(JSON.stringify({ ...head, ...(invocation ? { invocation } : {}), ...more, data }));
  };
  add("session.created", { title: `${wanted} events` });
  let turns = 0;
  for (; lines.length < wanted; turns++) {
    invocation = `inv_${turns}`;
    turn(add, turns, invocation);
    ms += turns % 25 === 24 ? 240_000 : 1000; // every 25 turns, a long idle time
  }
  const at = new Date(began).toISOString();
  const session = { id, kind: "session", created_at: at, updated_at: new Date(ms).toISOString(), status: "complete" };
  return {
    text: [JSON.stringify({ tapedeck: 1, session: { ...session, head: lines.length } }), ...lines, ""].join("\n"),
    turns,
    head: lines.length,
  };
}

function turn(add, n, invocation) {
  add("message.added", { message: { id: `u${n}`, role: "user", content: `question ${n}` } }, { actor: "user:ada" });
  add("RUN_STARTED", { threadId: "main", runId: invocation });
  add("REASONING_START", { messageId: `r${n}` });
  add("REASONING_MESSAGE_START", { messageId: `r${n}`, role: "reasoning" });
  for (let i = 0; i < 8; i++) add("REASONING_MESSAGE_CONTENT", { messageId: `r${n}`, delta: `thought ${i} ` });
  add("REASONING_MESSAGE_END", { messageId: `r${n}` });
  add("REASONING_END", { messageId: `r${n}` });
  for (let k = 0; k < 2; k++) {
    const call = { toolCallId: `c${n}_${k}` };
    add("TOOL_CALL_START", { ...call, toolCallName: k ? "bash" : "Read" });
    add("TOOL_CALL_ARGS", {
      ...call,
      delta: JSON.stringify(k ? { command: `make part${n}` } : { path: `src/${n}.ts` }),
    });
    add("TOOL_CALL_END", call);
    add("TOOL_CALL_RESULT", { ...call, messageId: `o${n}_${k}`, content: `line of output ${n}\n`.repeat(20) });
  }
  add("TEXT_MESSAGE_START", { messageId: `a${n}`, role: "assistant" });
  for (const delta of words) add("TEXT_MESSAGE_CONTENT", { messageId: `a${n}`, delta });
  add("TEXT_MESSAGE_CONTENT", { messageId: `a${n}`, delta: `\n\n- answer ${n}\n- done\n` });
  add("TEXT_MESSAGE_END", { messageId: `a${n}` });
  add("RUN_FINISHED", { threadId: "main", runId: invocation });
}

function channelOf(type) {
  if (type.startsWith("session.")) return "session";
  if (type.startsWith("TOOL_CALL")) return "toolCalls";
  return type.startsWith("RUN_") ? "agentState" : "chunks";
}
