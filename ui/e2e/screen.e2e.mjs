import assert from "node:assert/strict";
import { conversation, isAt, onPage, Server, turn, until, visitor } from "./lab.mjs";

/** A server with a session of two turns, and a page of it. */
async function lab(check, path = "/s/s") {
  const talk = async (server) => {
    await server.session({ id: "s", title: "A talk", agent: "hello" });
    await server.append("s", [
      ...turn("i1", "first question", ["first ", "answer"]),
      ...turn("i2", "second question", "second answer"),
    ]);
  };
  await onPage(path, talk, check);
}

export const checks = {
  "an empty list explains how to create sessions": async () => {
    const server = await Server.start();
    const v = await visitor(server);
    await v.page.goto(server.url);
    await v.page.getByText("No sessions yet").waitFor();
    await v.page.getByText('tapedeck run "Say hello"').waitFor();
    await v.page.getByRole("main").getByRole("button", { name: "New session" }).click();
    await v.page.getByRole("dialog", { name: "New session" }).waitFor();
    await v.end();
    await server.stop();
  },

  "the list updates by itself: a new fork appears first": () =>
    lab(async (page, server) => {
      await page.locator("[data-session=s]").waitFor();
      await server.call("POST", "/sessions/s/fork", { at: 7, id: "branch", title: "Another way" });
      await page.locator("[data-session=branch]").waitFor();
      const ids = await page.locator("[data-session]").evaluateAll((rows) => rows.map((r) => r.dataset.session));
      assert.deepEqual(ids, ["branch", "s"]);
    }, "/"),

  "all tabs of the side panel are visible at the usual width": () =>
    lab(async (page) => {
      const tabs = page.getByRole("tablist", { name: "Panels" });
      await tabs.waitFor();
      const [inner, outer] = await tabs.evaluate((t) => [t.scrollWidth, t.clientWidth]);
      assert.ok(inner <= outer, `the tabs need ${inner} px of ${outer}`);
    }),

  "a row of the list shows the last message without marks of Markdown": () =>
    lab(async (page, server) => {
      await server.session({ id: "m", title: "Marks", agent: "hello" });
      await server.append("m", turn("i1", "a question", "**Done**, see `main.go`"));
      await page.locator("[data-session=m]").getByText("Done, see main.go").waitFor();
    }, "/"),

  "keys move the playhead after a click anywhere, but not while the user types": () =>
    lab(async (page) => {
      await conversation(page).getByText("second answer").click();
      await page.keyboard.press("Home");
      await isAt(page, 1);
      for (const [key, offset] of [
        ["u", 2],
        ["u", 9],
        ["U", 2],
        ["Alt+.", 3],
        ["Alt+,", 2],
        ["End", 14],
        ["[", 9],
        ["]", 9],
      ]) {
        await page.keyboard.press(key);
        await isAt(page, offset);
      }
      await page.getByLabel("Skip idle").click();
      await page.keyboard.press("Home");
      await isAt(page, 1);
      await page.keyboard.press("L");
      await isAt(page, 14);
      await page.getByLabel("Message to the agent").fill("");
      await page.keyboard.type("u [ 0 Home");
      await isAt(page, 14);
      assert.equal(await page.getByLabel("Message to the agent").inputValue(), "u [ 0 Home");
      await page.keyboard.press("Escape");
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keyboard shortcuts" }).getByText("previous, next marker").waitFor();
    }),

  "playback runs to the end of the session, and does not call the agent": () =>
    lab(async (page, server) => {
      await conversation(page).getByText("second answer").waitFor();
      await page.keyboard.press("Home");
      await isAt(page, 1);
      await page.getByText("Playback (the agent is not called)").waitFor();
      await page.keyboard.press(" ");
      await isAt(page, 14);
      assert.equal((await server.call("GET", "/sessions/s")).head, 14);
    }),

  "new rows do not move a user who scrolled up; a button jumps to the latest": () =>
    lab(async (page, server) => {
      for (let i = 3; i < 40; i++) await server.append("s", turn(`i${i}`, `question ${i}`, `answer ${i}`));
      await conversation(page).getByText("answer 39").waitFor();
      await conversation(page).evaluate((el) => el.scrollTo(0, 300));
      await page.getByRole("button", { name: /Jump to latest/ }).waitFor();
      const before = await conversation(page).evaluate((el) => el.scrollTop);
      await server.append("s", turn("i99", "one more", "the newest"));
      await page.getByRole("button", { name: /Jump to latest \(\d+ new\)/ }).waitFor();
      assert.equal(await conversation(page).evaluate((el) => el.scrollTop), before);
      await page.getByRole("button", { name: /Jump to latest/ }).click();
      await conversation(page).getByText("the newest").waitFor();
    }),

  "a task is sent, seen, and stopped": async () => {
    const server = await Server.start("--demo");
    const v = await visitor(server);
    const { page } = v;
    await server.session({ id: "mine", agent: "long" });
    await page.goto(`${server.url}/s/mine`);
    await page.getByText("No messages yet").waitFor();
    await page.getByPlaceholder("Give long a task").waitFor(); // before it knows the agents, nothing is sent
    await page.getByLabel("Message to the agent").fill("Take your time");
    await page.keyboard.press("Enter");
    await conversation(page).getByText("Take your time").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Run cancelled").waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    await v.end();
    await server.stop();
  },

  "an error of the server is shown in place": () =>
    lab(async (page, server, v) => {
      v.expected.push(/status of 4\d\d/);
      await conversation(page).getByText("second answer").waitFor();
      await server.call("POST", "/sessions/s/close");
      await page.getByText("This session is closed").waitFor();
      await page.goto(`${server.url}/s/nothing`);
      await page
        .getByRole("alert")
        .getByText(/nothing/)
        .waitFor();
    }),

  "events are filtered by channel, type and text, and open": () =>
    lab(async (page) => {
      const events = page.getByRole("region", { name: "Events" });
      await events
        .getByRole("button", { name: /TEXT_MESSAGE_CONTENT/ })
        .first()
        .waitFor();
      await page.getByRole("button", { name: "chunks", exact: true }).click();
      await page.getByText("9 matching events").waitFor();
      await page.getByLabel("Type").fill("message.added");
      await page.getByText("2 matching events").waitFor();
      await page.getByRole("searchbox", { name: "Text" }).fill("second");
      await page.getByText("1 matching event").waitFor();
      await events.getByRole("button", { name: /message.added/ }).click();
      await events.getByLabel("event 8").getByText('"offset": 8').waitFor();
      await page.getByRole("button", { name: "As a task event" }).click();
      await events.getByText("user_message").waitFor();
      assert.match(page.url(), /channel=chunks/);
    }, "/s/s?view=events"),

  "the browser's back button goes through offsets and views": () =>
    lab(async (page) => {
      await conversation(page).getByText("second answer").waitFor();
      await page.getByRole("tab", { name: "Branches" }).click();
      await page.getByRole("button", { name: "As a list" }).click();
      await page.getByRole("link", { name: /first question/ }).click();
      await isAt(page, 2);
      await page.goBack();
      await isAt(page, 14);
      await page.getByText("Sessions that share events").waitFor();
      await page.goBack();
      await conversation(page).getByText("second answer").waitFor();
    }),

  "reverted events are a branch, and can be restored from there": () =>
    lab(async (page, server) => {
      await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i2" });
      await page.goto(`${server.url}/s/s?view=branches`);
      await page.getByText("Reverted by a rewind").waitFor();
      await page.getByRole("button", { name: "Restore" }).click();
      await until(async () => (await server.snapshot("s")).messages.length === 4, "the turn is restored");
    }),

  "two sessions are compared from the list": () =>
    lab(async (page, server) => {
      await server.call("POST", "/sessions/s/fork", { at: 7, id: "branch", title: "Another way" });
      await server.append("branch", turn("j1", "another question", "another answer"));
      await page.locator("[data-session=branch]").waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("x");
      await page.keyboard.press("j");
      await page.keyboard.press("x");
      await page.keyboard.press("c");
      await page.getByText(/^The same until turn 2/).waitFor();
      await page.getByText("another answer").first().waitFor();
    }, "/"),

  "a thread is shown alone, cleared, and restored": () =>
    lab(async (page, server) => {
      await server.append("s", turn("r1", "review it", "it is fine", "thread_review"));
      await page.goto(`${server.url}/s/s?panel=threads`);
      await conversation(page).getByText("it is fine").waitFor();
      await page.getByRole("button", { name: /^thread_review/ }).click();
      await until(
        async () => !(await conversation(page).innerText()).includes("first answer"),
        "the others are hidden",
      );
      await page.getByRole("button", { name: "Clear thread_review" }).click();
      await until(async () => !(await page.locator("main").innerText()).includes("it is fine"), "it is cleared");
      assert.equal((await server.snapshot("s")).messages.length, 4);
      await page.getByRole("button", { name: "Undo" }).click();
      await conversation(page).getByText("it is fine").waitFor();
    }),

  "a permission request is answered in place": () =>
    lab(async (page, server) => {
      const event = (type, data) => ({ type, invocation: "p1", data });
      await server.append("s", [
        event("RUN_STARTED", { threadId: "main", runId: "p1" }),
        event("permission.requested", {
          id: "ask_1",
          message: "May I?",
          options: [
            { id: "yes", name: "Yes", kind: "allow_once" },
            { id: "no", name: "No" },
          ],
        }),
      ]);
      await conversation(page).getByText("May I?").waitFor();
      await conversation(page).getByRole("button", { name: "Yes" }).click();
      await conversation(page)
        .getByText(/Answered: Yes/)
        .waitFor();
      const { events } = await server.call("GET", "/sessions/s/events?type=permission.answered");
      assert.equal(events[0].data.option, "yes");
    }),

  "a permission request in another thread names it, and the composer says that the agent is waiting": () =>
    lab(async (page, server) => {
      const event = (type, data) => ({ type, invocation: "p1", thread: "thread_review", data });
      await server.append("s", [
        event("RUN_STARTED", { threadId: "thread_review", runId: "p1" }),
        event("permission.requested", {
          id: "ask_1",
          message: "May I?",
          options: [{ id: "yes", name: "Yes", kind: "allow_once" }],
        }),
      ]);
      const asked = conversation(page).locator("[data-offset]").filter({ hasText: "May I?" });
      await asked.getByText("in thread_review").waitFor();
      await page.getByPlaceholder(/^Give \S+ (agent )?a task$/).waitFor();
      await page.goto(`${server.url}/s/s?thread=thread_review`);
      await page.getByPlaceholder("The agent is waiting for an answer").waitFor();
      await conversation(page).getByRole("button", { name: "Yes" }).click();
      await page.getByPlaceholder("The agent is working").waitFor();
    }),

  "after a cancel no item looks active": () =>
    lab(async (page, server) => {
      const event = (type, data) => ({ type, invocation: "p1", data });
      const entries = ["completed", "in_progress", "pending"].map((status) => ({ content: `It is ${status}`, status }));
      await server.append("s", [
        event("RUN_STARTED", { threadId: "main", runId: "p1" }),
        event("plan.updated", { entries }),
        event("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" }),
        event("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "It fails because" }),
        event("TOOL_CALL_START", { toolCallId: "c1", toolCallName: "Bash" }),
        event("TOOL_CALL_ARGS", { toolCallId: "c1", delta: '{"command":"make"}' }),
        event("TOOL_CALL_END", { toolCallId: "c1" }),
      ]);
      const beside = page.getByRole("complementary", { name: "Session details" });
      await beside.getByTitle("running").waitFor();
      await server.call("POST", "/sessions/s/cancel");
      await conversation(page).getByText("Cut off: the run was cancelled").waitFor();
      assert.equal(await beside.getByTitle("cancelled").innerText(), "■");
      await beside.getByRole("tab", { name: /Plan/ }).click();
      const entry = beside.getByRole("listitem").filter({ hasText: "It is in_progress" });
      await until(async () => /^‖[\s\S]*interrupted$/.test(await entry.innerText()), "the entry was interrupted");
      assert.equal(await page.locator(".typing-in").count(), 0);
    }),

  "the theme follows the system until the user chooses": () =>
    lab(async (page) => {
      const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
      await conversation(page).getByText("second answer").waitFor();
      await page.emulateMedia({ colorScheme: "dark" });
      await until(async () => (await theme()) === "dark", "dark");
      await page.getByRole("button", { name: "Light theme" }).click();
      await page.reload();
      await conversation(page).getByText("second answer").waitFor();
      assert.equal(await theme(), "light");
    }),
};
