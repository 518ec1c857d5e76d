// A route whose agent asks before it looks at the weather.
import { convertToModelMessages, jsonSchema, streamText, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { td } from "../tapedeck.ts";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const weather = tool({
  inputSchema: jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } }),
  execute: async ({ city }) => ({ city, celsius: 7 }),
});

/** A model that asks for the weather, and then speaks slowly about it. */
const model = new MockLanguageModelV4({
  doStream: async ({ prompt }) => ({
    stream: new ReadableStream({
      async start(c) {
        const asks = prompt.at(-1)?.role === "user";
        c.enqueue({ type: "stream-start", warnings: [] });
        c.enqueue({ type: "text-start", id: "0" });
        if (asks) c.enqueue({ type: "text-delta", id: "0", delta: "Let me look. " });
        for (let n = 1; n <= 20 && !asks; n++) {
          c.enqueue({ type: "text-delta", id: "0", delta: `more${n} ` });
          await new Promise((later) => setTimeout(later, 60));
        }
        c.enqueue({ type: "text-end", id: "0" });
        const toolCallId = `call-${prompt.length}`;
        if (asks) c.enqueue({ type: "tool-call", toolCallId, toolName: "weather", input: '{"city":"Bern"}' });
        const why = asks ? "tool-calls" : "stop";
        c.enqueue({ type: "finish", finishReason: { unified: why, raw: why }, usage });
        c.close();
      },
    }),
  }),
});

export async function POST(request: Request) {
  const { id, messages, trigger } = await request.json();
  const run = await td.run(id, { messages, trigger, headers: request.headers });
  const result = streamText({
    model,
    tools: { weather },
    toolApproval: { weather: "user-approval" },
    messages: await convertToModelMessages(messages),
    abortSignal: run.signal,
  });
  return run.respond(result);
}
