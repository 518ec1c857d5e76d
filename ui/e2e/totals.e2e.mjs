import { Server, turn, visitor } from "./lab.mjs";

const used = (inputTokens, outputTokens, costUsd) => ({
  type: "usage.reported",
  invocation: "i1",
  data: { model: "m", inputTokens, outputTokens, costUsd },
});

export const checks = {
  "tokens and cost are the sum of all reports, also while a run is active": async () => {
    const server = await Server.start();
    try {
      await server.session({ id: "s", title: "Costs" });
      const events = turn("i1", "question", "answer");
      await server.append("s", [...events.slice(0, -1), used(1000, 200, 0.25)]);
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s?panel=summary`);
      await v.page.getByText("1.2k tokens · $0.25").waitFor();
      await server.append("s", [used(300, 100, 0.17)]);
      await v.page.getByText("1.6k tokens · $0.42").waitFor();
      await server.append("s", events.slice(-1));
      const panel = v.page.getByRole("tabpanel", { name: "Summary" });
      await panel.getByText("1.3k").first().waitFor();
      await panel.getByText("$0.42").first().waitFor();
      await v.page.getByText("1.6k tokens · $0.42").waitFor();
      await v.end();
    } finally {
      await server.stop();
    }
  },
};
