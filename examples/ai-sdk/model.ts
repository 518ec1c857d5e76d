// A model that says words slowly and costs nothing. Put yours here, such as "anthropic/claude-sonnet-4.5".
import { MockLanguageModelV4 } from "ai/test";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

export const model = new MockLanguageModelV4({
  doStream: async () => ({
    stream: new ReadableStream({
      async start(c) {
        c.enqueue({ type: "stream-start", warnings: [] });
        c.enqueue({ type: "text-start", id: "0" });
        for (let n = 1; n <= 100; n++) {
          c.enqueue({ type: "text-delta", id: "0", delta: `word${n} ` });
          await new Promise((later) => setTimeout(later, 60));
        }
        c.enqueue({ type: "text-end", id: "0" });
        c.enqueue({ type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage });
        c.close();
      },
    }),
  }),
});
