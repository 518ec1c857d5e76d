import { afterEach, expect, it, vi } from "vitest";
import { startSession, titleOf } from "./new-session";

afterEach(() => vi.unstubAllGlobals());

/** Answers requests, and records them. A string is an error of the network. */
function serve(answers: Record<string, [status: number, body: unknown] | string>) {
  const sent: string[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const line = `${init.method} ${new URL(url, "http://h").pathname}`;
    sent.push(init.body ? `${line} ${init.body}` : line);
    const answer = answers[line];
    if (answer === undefined || typeof answer === "string") throw new TypeError(answer);
    return answer[0] === 204 ? new Response(null, { status: 204 }) : Response.json(answer[1], { status: answer[0] });
  });
  return sent;
}

const made: [number, unknown] = [201, { id: "s" }];

it("creates the session, then gives the task", async () => {
  const sent = serve({ "POST /api/v1/sessions": made, "POST /api/v1/sessions/s/task": [202, {}] });
  await startSession({ task: "Fix it\nplease", agent: "coder", model: "large", folder: "/srv/web" });
  expect(sent).toEqual([
    'POST /api/v1/sessions {"title":"Fix it","agent":"coder","labels":{"folder":"/srv/web"}}',
    'POST /api/v1/sessions/s/task {"task":"Fix it\\nplease","agent":"coder","config":{"model":"large"}}',
  ]);
});

it("leaves no session behind if the task is refused", async () => {
  const refused = { error: { kind: "unavailable", message: "coder cannot run here" } };
  const sent = serve({
    "POST /api/v1/sessions": made,
    "POST /api/v1/sessions/s/task": [503, refused],
    "DELETE /api/v1/sessions/s": [204, null],
  });
  await expect(startSession({ task: "x", agent: "coder" })).rejects.toThrow("coder cannot run here");
  expect(sent.at(-1)).toBe("DELETE /api/v1/sessions/s");
});

it("keeps the session if the agent may have begun", async () => {
  const sent = serve({ "POST /api/v1/sessions": made, "POST /api/v1/sessions/s/task": "offline" });
  await expect(startSession({ task: "x", agent: "coder" })).rejects.toThrow("cannot be reached");
  expect(sent).toHaveLength(2);
});

it("shortens a long first line", () => {
  expect(titleOf(`  a  b \nc`)).toBe("a b");
  expect([...titleOf("ä".repeat(100))]).toHaveLength(80);
});
