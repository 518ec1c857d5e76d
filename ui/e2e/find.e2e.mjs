// Find in a session, Go to, and the command palette.
import assert from "node:assert/strict";
import { conversation, onPage, turn, until } from "./lab.mjs";

const bar = (page) => page.getByRole("search", { name: "Find in the session" });
const count = (page, text) => bar(page).getByText(text, { exact: true }).waitFor();
/** The highlighted text of the current hit. */
const marked = (page) =>
  page.evaluate(() => [...(globalThis.CSS.highlights.get("found-here") ?? [])].map((r) => r.toString()));

const focused = (page) =>
  page
    .getByRole("dialog")
    .getByRole("combobox")
    .evaluate((el) => el === document.activeElement);

async function lab(check, sessions) {
  const fill = async (server) => {
    await server.session({ id: "s", title: "A long talk" });
    await sessions(server);
  };
  await onPage("/s/s", fill, check);
}

/** Turns of 24 events. Three of the turns mention a heron. */
const long = (n) => async (server) => {
  let events = [];
  for (let i = 1; i <= n; i++) {
    const heron = i === 2 || i === n / 2 || i === n - 1;
    const words = heron ? [`a grey heron, number ${i}`] : [`answer ${i}`, ..."and so on and on and on".repeat(3)];
    events.push(...turn(`i${i}`, `question ${i}`, words.slice(0, 19)));
    if (events.length < 5000 && i < n) continue;
    await server.append("s", events);
    events = [];
  }
};

export const checks = {
  "find in session reaches events that are not loaded, counts the hits, steps through them and highlights them": () =>
    lab(async (page) => {
      await conversation(page).getByText("answer 2200").waitFor();
      await page.keyboard.press("Control+f");
      await bar(page).getByRole("searchbox", { name: "Find" }).fill("grey her");
      await count(page, "3 of 3");
      await conversation(page).getByText("number 2199").waitFor();
      await until(async () => (await marked(page)).join(" ") === "grey her", "the newest hit is highlighted");
      await page.keyboard.press("Enter");
      await count(page, "1 of 3");
      await conversation(page).getByText("number 2", { exact: false }).waitFor();
      await page.getByText("Playback (the agent is not called)").waitFor();
      await page.keyboard.press("Shift+Enter");
      await count(page, "3 of 3");
      await page.keyboard.press("F3");
      await count(page, "1 of 3");
      await page.keyboard.press("F3");
      await count(page, "2 of 3");
      await conversation(page).getByText("number 1100").waitFor();
      await until(async () => (await marked(page)).length > 0, "it is highlighted");
      await page.keyboard.press("Escape");
      await bar(page).waitFor({ state: "detached" });
      assert.deepEqual(await marked(page), []);
    }, long(2200)),

  "find in session opens the tool call of a hit, and reports when there are no results": () =>
    lab(
      async (page) => {
        await conversation(page).getByText("first answer").waitFor();
        await page.keyboard.press("/");
        await page.keyboard.type("zebra");
        await count(page, "1 of 1");
        await conversation(page)
          .getByText(/a zebra in the output/)
          .waitFor();
        await until(async () => (await marked(page)).join(" ") === "zebra", "it is highlighted");
        await page.getByRole("searchbox", { name: "Find" }).fill("unicorn");
        await count(page, "No results");
        await page.getByRole("button", { name: "Close search" }).click();
        await bar(page).waitFor({ state: "detached" });
      },
      async (server) => {
        const call = (type, data) => ({ type, invocation: "t1", data });
        await server.append("s", [
          call("RUN_STARTED", { threadId: "main", runId: "t1" }),
          call("TOOL_CALL_START", { toolCallId: "c1", toolCallName: "Read" }),
          call("TOOL_CALL_ARGS", { toolCallId: "c1", delta: '{"path":"zoo.txt"}' }),
          call("TOOL_CALL_END", { toolCallId: "c1" }),
          call("TOOL_CALL_RESULT", { toolCallId: "c1", messageId: "r1", content: "there is a zebra in the output" }),
          call("RUN_FINISHED", { threadId: "main", runId: "t1" }),
        ]);
        await server.append("s", turn("i1", "first question", "first answer"));
      },
    ),

  "find in session finds the shared events of a fork, and shows reverted ones at their time": () =>
    lab(
      async (page, server) => {
        await conversation(page).getByText("Rewound").waitFor();
        await page.keyboard.press("Control+f");
        await page.keyboard.type("heron");
        await count(page, "1 of 1");
        await conversation(page).getByText("a grey heron").waitFor();
        await page.goto(`${server.url}/s/branch`);
        await conversation(page).getByText("first answer").waitFor();
        await page.keyboard.press("Control+f");
        await page.keyboard.type("answer");
        await count(page, "1 of 1");
        await until(async () => (await marked(page)).join(" ") === "answer", "it is highlighted");
      },
      async (server) => {
        await server.append("s", [
          ...turn("i1", "first question", "first answer"),
          ...turn("i2", "a bird?", "a grey heron"),
        ]);
        await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i2" });
        await server.call("POST", "/sessions/s/fork", { at: 7, id: "branch" });
      },
    ),

  "Go to leads to a turn and an offset": () =>
    lab(
      async (page) => {
        await conversation(page).getByText("second answer").waitFor();
        const go = async (text) => {
          await page.keyboard.press("Control+g");
          const dialog = page.getByRole("dialog", { name: "Go to" });
          await until(() => focused(page), "the input has the focus");
          await page.keyboard.type(text);
          await dialog.getByRole("option").first().waitFor();
          await page.keyboard.press("Enter");
          await dialog.waitFor({ state: "detached" });
        };
        await go("turn 2");
        await page.getByText(/^event 9 of 14$/).waitFor();
        await go("#3");
        await page.getByText(/^event 4 of 14$/).waitFor();
      },
      (server) =>
        server.append("s", [
          ...turn("i1", "first question", ["first ", "answer"]),
          ...turn("i2", "second question", "second answer"),
        ]),
    ),

  "the command palette finds sessions and commands by keyboard": () =>
    lab(
      async (page, server) => {
        await conversation(page).getByText("first answer").waitFor();
        await page.getByLabel("Message to the agent").focus();
        const dialog = page.getByRole("dialog", { name: "Command palette" });
        await page.keyboard.press("Control+k");
        await until(() => focused(page), "the input has the focus");
        await page.keyboard.type("start");
        await dialog.getByRole("option", { name: /Go to start/ }).waitFor();
        await page.keyboard.press("Enter");
        await page.getByText(/^event 1 of 7$/).waitFor();
        await page.keyboard.press("Control+k");
        await until(() => focused(page), "the input has the focus");
        await page.keyboard.type("another one");
        await dialog.getByRole("option", { name: /Another one/ }).waitFor();
        await page.keyboard.press("Enter");
        await until(() => page.url() === `${server.url}/s/other`, "the other session is open");
        await page.keyboard.press("Control+k");
        await until(() => focused(page), "the input has the focus");
        await page.keyboard.type("nothing of the kind");
        await dialog.getByText("No results").waitFor();
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
      },
      async (server) => {
        await server.append("s", turn("i1", "first question", "first answer"));
        await server.session({ id: "other", title: "Another one" });
      },
    ),
};
