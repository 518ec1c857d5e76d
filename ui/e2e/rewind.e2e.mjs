// Rewind, undo, fork and resume on the page.
import assert from "node:assert/strict";
import { conversation, importExport, isAt, onPage, timed, turn, until } from "./lab.mjs";

const asks = (page) => page.getByRole("button", { name: "Rewind to here" });
const composer = (page) => page.getByLabel("Message to the agent");

async function talk(server) {
  await server.session({ id: "s", title: "A talk", agent: "hello", state: { step: 1, same: true } });
  await server.append("s", [
    ...turn("i1", "first question", "first answer"),
    ...turn("i2", "second question", "second answer").slice(0, -1),
    { type: "STATE_SNAPSHOT", invocation: "i2", data: { snapshot: { step: 2, same: true } } },
    { type: "TOOL_CALL_START", invocation: "i2", data: { toolCallId: "c1", toolCallName: "Edit" } },
    {
      type: "TOOL_CALL_ARGS",
      invocation: "i2",
      data: { toolCallId: "c1", delta: JSON.stringify({ path: "src/lock.go", old_string: "a", new_string: "b" }) },
    },
    { type: "TOOL_CALL_END", invocation: "i2", data: { toolCallId: "c1" } },
    { type: "TOOL_CALL_RESULT", invocation: "i2", data: { toolCallId: "c1", messageId: "r1", content: "done" } },
    { type: "RUN_FINISHED", invocation: "i2", data: { threadId: "main", runId: "i2" } },
  ]);
}

const gone = (page) =>
  until(async () => !(await conversation(page).innerText()).includes("second answer"), "it is hidden");

export const checks = {
  "rewind: the dialog lists what is hidden and what stays; it survives a reload, and Undo restores": () =>
    onPage("/s/s", talk, async (page, server) => {
      await conversation(page).getByText("second question").hover();
      await asks(page).nth(2).click();
      const dialog = page.getByRole("dialog", { name: "Rewind to here?" });
      await dialog.getByText(/1 turn, 2 messages, 1 tool call/).waitFor();
      await dialog.getByText("src/lock.go").waitFor();
      await dialog.getByText(/1 member changes back: step/).waitFor();
      await dialog.getByRole("button", { name: "Rewind", exact: true }).click();
      await gone(page);
      await until(
        async () => (await composer(page).inputValue()) === "second question",
        "the composer has the text again",
      );
      await page.reload();
      const note = page.getByRole("note").filter({ hasText: "Rewound" });
      await note.waitFor();
      await gone(page);
      await note.getByRole("button", { name: "Show hidden" }).click();
      await conversation(page).getByText("second answer").waitFor();
      await page.keyboard.press("L");
      await gone(page);
      await page.getByRole("tab", { name: /Events/ }).click();
      await page.getByLabel("Type").fill("message.added");
      await page.getByText("2 matching events").waitFor();
      await page.getByText("(reverted)").first().waitFor({ state: "attached" });
      await page.getByRole("tab", { name: "Conversation" }).click();
      await note.getByRole("button", { name: "Undo" }).click();
      await conversation(page).getByText("second answer").waitFor();
      const { messages } = await server.snapshot("s");
      assert.equal(messages.filter((m) => m.role !== "tool").length, 4);
    }),

  "rewind: the button explains why it is disabled on the first turn, on a row without a turn, and in playback": () =>
    onPage("/s/s", talk, async (page, server) => {
      await conversation(page).getByText("second answer").waitFor();
      const why = (n) => asks(page).nth(n).getAttribute("title");
      await until(async () => /nothing before the first turn/.test(await why(0)), "the first turn gives a reason");
      assert.equal(await asks(page).nth(0).getAttribute("aria-disabled"), "true");
      await conversation(page).getByText("first question").hover();
      await asks(page).nth(0).click({ force: true });
      await page.getByText("Cannot rewind to here: there is nothing before the first turn").first().waitFor();
      assert.equal(await page.getByRole("dialog").count(), 0);
      assert.equal(await asks(page).nth(2).getAttribute("aria-disabled"), null);
      await server.append("s", {
        type: "message.added",
        data: { message: { id: "note", role: "system", content: "a note from outside" } },
      });
      await conversation(page).getByText("a note from outside").waitFor();
      assert.match(await asks(page).last().getAttribute("title"), /belongs to no turn/);
      await page.keyboard.press("u");
      await page.keyboard.press("End"); // it is live
      await page.keyboard.press("Alt+,");
      await isAt(page, 18);
      await until(async () => /go live first/.test(await why(2)), "the reason in playback is to go live");
    }),

  "rewind: one that would restore reverted turns is explained, and needs confirmation": () =>
    onPage(
      "/s/s",
      async (server) => {
        await talk(server);
        await server.append("s", turn("i3", "third question", "third answer"));
      },
      async (page, server, v) => {
        v.expected.push(/409/);
        await conversation(page).getByText("third question").hover();
        const row = conversation(page).getByRole("listitem").filter({ hasText: "third question" });
        await row.getByRole("button", { name: "Rewind to here" }).click();
        const dialog = page.getByRole("dialog", { name: "Rewind to here?" });
        await dialog.getByText("1 turn, 2 messages", { exact: false }).waitFor();
        await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i2" }); // another user
        await gone(page);
        const { head } = await server.call("GET", "/sessions/s");
        await dialog.getByRole("button", { name: "Rewind", exact: true }).click();
        await dialog.getByText(/Nothing was changed\. The session was already rewound to an earlier turn/).waitFor();
        await dialog.getByText("third question").waitFor();
        assert.equal((await server.call("GET", "/sessions/s")).head, head);
        await dialog.getByRole("button", { name: "Rewind anyway" }).click();
        await conversation(page).getByText("second answer").waitFor();
        assert.ok(!(await conversation(page).innerText()).includes("third"));
        await until(
          async () => (await composer(page).inputValue()) === "third question",
          "the composer has the text again",
        );
      },
    ),

  "rewind: the dialog warns that an active run will be cancelled, and it is": () =>
    onPage(
      "/s/s",
      async (server) => {
        await talk(server);
        await server.call("POST", "/sessions/s/task", { task: "take your time", agent: "long" });
      },
      async (page, server) => {
        await conversation(page).getByText("take your time").first().hover();
        await page.getByRole("button", { name: "Stop" }).waitFor();
        const row = conversation(page).getByRole("listitem").filter({ hasText: "take your time" });
        await row.getByRole("button", { name: "Rewind to here" }).click();
        const dialog = page.getByRole("dialog", { name: "Rewind to here?" });
        await dialog.getByText("1 run will be cancelled first.").waitFor();
        await dialog.getByRole("button", { name: "Rewind", exact: true }).click();
        await until(async () => !(await conversation(page).innerText()).includes("take your time"), "it is hidden");
        await until(async () => (await server.call("GET", "/sessions/s")).runs === undefined, "no run is open");
      },
      { args: ["--demo"] },
    ),

  "fork: a fork from a turn does not change the original, and both are in the graph": () =>
    onPage("/s/s", talk, async (page, server) => {
      const before = (await server.call("GET", "/sessions/s")).head;
      await conversation(page).getByText("first answer").hover();
      await page.getByRole("button", { name: "Fork here" }).click();
      const dialog = page.getByRole("dialog", { name: "Fork here?" });
      await dialog.getByLabel("Title").fill("Another way");
      await dialog.getByRole("button", { name: "Fork", exact: true }).click();
      await until(() => !/\/s\/s(\?|$)/.test(page.url()), "the fork is open");
      await conversation(page).getByText("first answer").waitFor();
      assert.ok(!(await conversation(page).innerText()).includes("second"));
      assert.equal((await server.call("GET", "/sessions/s")).head, before);
      await page.getByRole("tab", { name: "Branches" }).click();
      await page.getByText("Another way").nth(1).waitFor();
      await page.getByText("A talk", { exact: true }).first().waitFor();
    }),

  "resume: a cancelled run is resumed with a resume context": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "long" });
      },
      async (page, server) => {
        await page.getByPlaceholder("Give long a task").waitFor(); // before it knows the agents, nothing is sent
        await composer(page).fill("take your time");
        await page.keyboard.press("Enter");
        await conversation(page).getByText("take your time").first().waitFor();
        await until(async () => (await server.snapshot("s")).messages.length > 3, "the agent sends messages");
        await page.getByRole("button", { name: "Stop" }).click();
        await page.getByText(/can be resumed/).waitFor();
        await page.getByRole("button", { name: "Resume" }).click();
        await page.getByRole("button", { name: "Stop" }).waitFor();
        await page.goto(`${server.url}/s/s?view=events&q=RESUME+CONTEXT`);
        await page.getByText("[RESUME CONTEXT]", { exact: false }).first().waitFor();
        await server.call("POST", "/sessions/s/cancel");
      },
      { args: ["--demo"] },
    ),

  "resume: a run cancelled before the agent started cannot be resumed": () =>
    onPage(
      "/s/early",
      (server) => {
        const of = { invocation: "e1" };
        const run = { threadId: "main", runId: "e1" };
        const cancelled = { ...run, outcome: { type: "cancelled" }, metadata: { tapedeck: { resumable: false } } };
        const events = [
          [0, "session.created", { title: "Too early" }],
          [1, "message.added", { message: { id: "u", role: "user", content: "never mind" } }, of],
          [2, "RUN_STARTED", run, of],
          [3, "RUN_FINISHED", cancelled, of],
        ];
        return importExport(server, timed("early", events, "cancelled"));
      },
      async (page) => {
        await page.getByText(/the agent had not begun/).waitFor();
        await page.getByRole("button", { name: "Send" }).waitFor();
        assert.equal(await page.getByRole("button", { name: "Resume" }).count(), 0);
      },
    ),
};
