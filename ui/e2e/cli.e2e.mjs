// Changes made on the command line appear on an open page.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { binary, conversation, onPage, turn, until } from "./lab.mjs";

const cli = async (server, ...args) =>
  (await promisify(execFile)(binary, [...args, "--url", server.url], { timeout: 120_000 })).stdout.trim();

async function talk(server) {
  await server.session({ id: "s", title: "A talk", agent: "hello" });
  await server.append("s", [
    ...turn("i1", "first question", "first answer"),
    ...turn("i2", "second question", "second answer"),
  ]);
}

export const checks = {
  "a copy made on the command line appears in the open list": () =>
    onPage("/", talk, async (page, server) => {
      await page.locator("[data-session=s]").waitFor();
      const id = await cli(server, "copy", "s", "--to-point", "@6", "--title", "Copied");
      await page.locator(`[data-session="${id}"]`).getByText("Copied").waitFor();
      assert.equal((await server.snapshot(id)).messages.length, 2);
    }),

  "an overwrite and its new turn appear on the open page": () =>
    onPage("/s/s", talk, async (page, server) => {
      await conversation(page).getByText("second answer").waitFor();
      await cli(server, "overwrite", "s", "--from-point", "@6");
      await until(async () => !(await conversation(page).innerText()).includes("second answer"), "it is reverted");
      await conversation(page).getByText("Overwritten").waitFor();
      await cli(server, "run", "another question", "--overwrite", "s", "--from-point", "@6", "--agent", "hello");
      await conversation(page).getByText("another question", { exact: true }).waitFor();
      await conversation(page).getByText("Run complete").last().waitFor();
    }),

  "a run that the command line resumes continues on the open page": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "coder" });
        await server.call("POST", "/sessions/s/task", { task: "mend it" });
        await until(async () => (await server.snapshot("s")).tool_calls.length > 0, "the run has started");
        await server.call("POST", "/sessions/s/cancel");
      },
      async (page, server) => {
        await page.getByText(/can be resumed/).waitFor();
        const resumed = cli(server, "resume", "s").catch((err) => err.code);
        await page.getByRole("button", { name: "Stop" }).click();
        await conversation(page).getByText("Run cancelled").nth(1).waitFor();
        assert.equal(await resumed, 130);
      },
      { args: ["--demo"] },
    ),
};
