// Starting an agent, and who answers.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { conversation, faults, importExport, onPage, timed, turn, until } from "./lab.mjs";

const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true };
const answers = (page) => page.getByRole("combobox", { name: "Agent that answers" });
const message = (page) => page.getByRole("textbox", { name: "Message to the agent" });
const idOf = (page) => decodeURIComponent(new URL(page.url()).pathname.split("/")[2]);

/** A folder with a configuration: two scripts, and an agent that cannot run. */
function configured(check) {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), "tapedeck-config-"));
    mkdirSync(join(folder, "web"));
    const file = join(folder, "tapedeck.toml");
    writeFileSync(
      file,
      `[[agent]]
name = "hello"
kind = "script"
description = "greets"

[[agent]]
name = "writer"
preset = "ollama"
url = "http://127.0.0.1:9/v1"
model = "small"
models = ["large"]
folders = ["web"]
description = "writes files"

[[agent]]
name = "away"
kind = "acp"
command = "a-program-that-is-not-installed"
`,
    );
    try {
      await check(["--config", file], folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** Starts a session with the dialog, and checks who answers. */
async function startHello(page, server, open) {
  const before = page.url();
  await page.getByRole("banner").getByRole("button", { name: "New session" }).waitFor();
  await open();
  const dialog = page.getByRole("dialog", { name: "New session" });
  const field = dialog.getByRole("textbox", { name: "First message" });
  await field.waitFor();
  await until(() => field.evaluate((el) => el === document.activeElement), "the first field has the focus");
  await field.fill("Say hello");
  await dialog.getByRole("radio", { name: /^hello/ }).check();
  await dialog.getByRole("button", { name: "Start" }).click();
  await until(() => page.url() !== before, "the page of the session opens");
  await conversation(page).getByText("Say hello", { exact: true }).waitFor();
  const session = await server.call("GET", `/sessions/${idOf(page)}`);
  assert.equal(session.agent, "hello");
  assert.equal(session.title, "Say hello");
  assert.equal(await answers(page).inputValue(), "hello");
}

export const checks = {
  "a session is started from the list, by key, and from the palette": () =>
    onPage(
      "/",
      async () => {},
      async (page, server) => {
        await startHello(page, server, () =>
          page.getByRole("banner").getByRole("button", { name: "New session" }).click(),
        );
        await page.goto(server.url);
        await page.getByText("Say hello").first().waitFor();
        await startHello(page, server, () => page.keyboard.press("n"));
        await startHello(page, server, async () => {
          await page.keyboard.press("Control+k");
          await page.getByPlaceholder(/Find a session/).fill("new session");
          await page.getByRole("option", { name: /New session/ }).click();
        });
        assert.equal((await server.call("GET", "/sessions")).sessions.length, 3);
      },
    ),

  "a new session: what is missing is said in place, and the text survives a reload": () =>
    onPage(
      "/",
      async () => {},
      async (page) => {
        await page.getByRole("banner").getByRole("button", { name: "New session" }).waitFor();
        await page.keyboard.press("n");
        const dialog = page.getByRole("dialog", { name: "New session" });
        await dialog.getByRole("button", { name: "Start" }).click();
        await dialog.getByRole("alert").getByText("Write what the agent should do.").waitFor();
        await dialog.getByRole("textbox", { name: "First message" }).fill("half a thought");
        await page.reload();
        await page.getByRole("banner").getByRole("button", { name: "New session" }).waitFor();
        await page.keyboard.press("n");
        const again = page.getByRole("textbox", { name: "First message" });
        await again.waitFor();
        assert.equal(await again.inputValue(), "half a thought");
      },
    ),

  "a new session: each agent says what it is, and the model and the folder are chosen where it offers them": configured(
    (args, folder) =>
      onPage(
        "/",
        async () => {},
        async (page, server) => {
          await page.getByRole("banner").getByRole("button", { name: "New session" }).waitFor();
          await page.keyboard.press("n");
          const dialog = page.getByRole("dialog", { name: "New session" });
          await dialog.getByText("greets").waitFor();
          assert.ok(await dialog.getByRole("radio", { name: /^away/ }).isDisabled());
          assert.equal(await dialog.getByRole("combobox").count(), 0, "hello offers no choice");
          await dialog.getByRole("radio", { name: /^writer/ }).check();
          await dialog.getByRole("combobox", { name: "Model" }).selectOption("large");
          await dialog.getByRole("combobox", { name: "Folder" }).selectOption(join(folder, "web"));
          await dialog.getByRole("textbox", { name: "First message" }).fill("Write a page");
          await dialog.getByRole("button", { name: "Start" }).click();
          await conversation(page).getByText("Write a page", { exact: true }).waitFor();
          const { labels } = await server.call("GET", `/sessions/${idOf(page)}`);
          assert.deepEqual(labels, { folder: join(folder, "web") });
          const model = page.getByRole("combobox", { name: "Model of writer" });
          assert.equal(await model.inputValue(), "large", "the next message goes to the same model");
          await until(async () => {
            const { events } = await server.call("GET", `/sessions/${idOf(page)}/events?type=RUN_STARTED`);
            return events[0]?.data.metadata?.tapedeck?.model === "large";
          }, "the run has the model");
        },
        { args },
      ),
  ),

  "the composer names the agent that answers, and another one can be picked": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "coder" });
      },
      async (page, server) => {
        await answers(page).waitFor();
        assert.equal(await answers(page).inputValue(), "coder");
        await answers(page).selectOption("hello");
        await page.reload();
        await until(async () => (await answers(page).inputValue()) === "hello", "the choice outlives a reload");
        await message(page).fill("Say hello");
        await message(page).press("Enter");
        await until(async () => {
          const { events } = await server.call("GET", "/sessions/s/events?type=RUN_STARTED");
          return events[0]?.data.metadata?.tapedeck?.agent === "hello";
        }, "hello has answered");
        assert.equal(await message(page).inputValue(), "");
      },
    ),

  "a session without an agent of this server asks who answers, and sends nothing before": () =>
    onPage(
      "/s/bare",
      async (server) => {
        await server.session({ id: "bare", title: "Without an agent" });
        await importExport(
          server,
          timed("far", [[0, "session.created", { title: "Imported", agent: "claude-code" }]], "idle"),
        );
      },
      async (page, server) => {
        await page.getByText("Choose who answers.").waitFor();
        await page.goto(`${server.url}/s/far`);
        await page.getByText("This server has no agent claude-code.").waitFor();
        await message(page).fill("Say hello");
        await message(page).press("Enter");
        await page.getByRole("alert").getByText("Nothing was sent: choose who answers.").waitFor();
        assert.equal((await server.call("GET", "/sessions/far/tasks")).tasks.length, 0);
        await page.reload();
        await until(async () => (await message(page).inputValue()) === "Say hello", "the draft is there");
        await answers(page).selectOption("hello");
        await message(page).press("Enter");
        await conversation(page).getByText("Say hello", { exact: true }).waitFor();
      },
    ),

  "what waits for a program between its runs is read on a phone, withdrawn, and sent behind": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s" });
        const [asked, begin, ...rest] = turn("i1", "Plan a trip", "Done");
        const metadata = { tapedeck: { agent: "planner" } };
        await server.append("s", [asked, { ...begin, data: { ...begin.data, metadata } }]);
        for (const task of ["Look at the trains of the second week before you go on", "Then write it down"])
          await server.call("POST", "/sessions/s/task", { task, when: "queue" });
        await server.append("s", rest);
      },
      async (page) => {
        const waiting = page.getByRole("list", { name: "Messages that wait" }).getByRole("listitem");
        const text = waiting.first().getByText("Look at the trains of the second week before you go on");
        await text.waitFor();
        const cut = await text.evaluate(
          (el) => el.scrollWidth > el.clientWidth || el.scrollHeight > el.clientHeight + 1,
        );
        assert.ok(!cut, "the text is whole");
        await message(page).fill("And book it");
        await page.keyboard.press("Enter");
        await waiting.getByText("And book it").waitFor();
        await waiting.first().getByRole("button", { name: "Withdraw" }).click();
        await until(async () => (await waiting.count()) === 2, "one is withdrawn");
      },
      phone,
    ),

  "on a phone a session is started and written to, with targets of 44 pixels": () =>
    onPage(
      "/",
      async () => {},
      async (page, server) => {
        await startHello(page, server, () =>
          page.getByRole("banner").getByRole("button", { name: "New session" }).tap(),
        );
        for (const control of [answers(page), page.getByRole("button", { name: "Share" })]) {
          const box = await control.boundingBox();
          assert.ok(box.height >= 43.5 && box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
        }
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.equal(wide, 0, "nothing is cut off at the side");
      },
      phone,
    ),

  "a message is edited and run again in a fork, by another agent, and compared in one click": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "coder" });
        await server.append("s", [
          ...turn("i1", "first question", "first answer"),
          ...turn("i2", "second question", "second answer"),
        ]);
      },
      async (page, server) => {
        const asked = conversation(page).getByText("second question", { exact: true });
        await asked.click();
        await page.getByRole("button", { name: "Edit and run again" }).click();
        const dialog = page.getByRole("dialog", { name: "Edit and run again" });
        const text = dialog.getByRole("textbox", { name: "Message" });
        assert.equal(await text.inputValue(), "second question");
        await text.fill("a better question");
        await dialog.getByRole("combobox", { name: "Agent that answers" }).selectOption("hello");
        await dialog.getByRole("button", { name: "Fork and run" }).click();
        await conversation(page).getByText("a better question", { exact: true }).waitFor();
        const fork = idOf(page);
        assert.notEqual(fork, "s");
        await conversation(page).getByText("first answer").waitFor();
        assert.equal(await conversation(page).getByText("second question").count(), 0);
        assert.equal(await answers(page).inputValue(), "hello");
        const { messages } = await server.snapshot("s");
        assert.equal(messages.filter((m) => m.role === "user").length, 2, "the session did not change");
        await page.getByRole("link", { name: "Compare with it" }).click();
        await page.getByText("a better question").first().waitFor();
        await page.getByText("second question").first().waitFor();
      },
    ),

  "a turn is run again by another agent in a fork, from its answer, by key and from the palette, and compared in one click":
    () =>
      onPage(
        "/s/s",
        async (server) => {
          await server.session({ id: "s", title: "A talk", agent: "coder" });
          await server.append("s", [
            ...turn("i1", "first question", "first answer"),
            ...turn("i2", "second question", "second answer"),
          ]);
        },
        async (page, server) => {
          const dialog = page.getByRole("dialog", { name: "Run again from here with another agent" });
          await conversation(page).getByText("first answer").click();
          await page.keyboard.press("A");
          await dialog.getByText("first question", { exact: true }).waitFor();
          await dialog.getByRole("button", { name: "Cancel" }).click();
          await page.keyboard.press("Escape");
          await page.keyboard.press("Control+k");
          await page.getByPlaceholder(/Find a session/).fill("another agent");
          await page.getByRole("option", { name: /Run again from here/ }).click();
          await dialog.getByText("second question", { exact: true }).waitFor(); // without a selection: the newest turn
          await dialog.getByRole("button", { name: "Cancel" }).click();

          await conversation(page).getByText("second answer").click();
          await page.getByRole("button", { name: "Run again from here with another agent" }).click();
          await dialog.getByText("coder answered here.").waitFor();
          const agent = dialog.getByRole("combobox", { name: "Agent that answers" });
          assert.notEqual(await agent.inputValue(), "coder", "another agent is proposed");
          await agent.selectOption("hello");
          await dialog.getByRole("button", { name: "Fork and run" }).click();
          await page.getByRole("heading", { name: "A talk (hello)" }).waitFor();
          await conversation(page).getByText("first answer").waitFor();
          await conversation(page).getByText("second question", { exact: true }).waitFor();
          assert.equal(await answers(page).inputValue(), "hello");
          const fork = await server.call("GET", `/sessions/${idOf(page)}`);
          assert.equal(fork.parent, "s");
          assert.equal((await server.snapshot("s")).messages.length, 4, "the session did not change");
          await page.getByRole("link", { name: "Compare with it" }).click();
          await page.getByText("second answer").first().waitFor();
          await page.getByText("The same: 1 message").waitFor(); // the question is the same
        },
      ),

  "the state is changed in a fork that leaves at the playhead, and an agent runs there": () =>
    onPage(
      "/s/s?panel=state",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "hello" });
        const state = (invocation, snapshot) => ({ type: "STATE_SNAPSHOT", invocation, data: { snapshot } });
        const [asked, began, ...rest] = turn("i1", "first question", "first answer");
        await server.append("s", [asked, began, state("i1", { step: 1, draft: "a" }), ...rest]);
        const [again, start, ...more] = turn("i2", "second question", "second answer");
        await server.append("s", [again, start, state("i2", { step: 2 }), ...more]);
      },
      async (page, server) => {
        const panel = page.getByRole("tabpanel", { name: "State" });
        await panel.getByText('"step": 2').waitFor();
        const { markers } = await server.call("GET", "/sessions/s/replay-index");
        const second = markers.filter((m) => m.kind === "user")[1].offset;
        await page.goto(`${server.url}/s/s?panel=state&at=${second}`);
        await panel.getByText('"step": 1').waitFor();
        await panel.getByRole("button", { name: "Change it in a fork" }).click();
        const dialog = page.getByRole("dialog", { name: "Change the state in a fork" });
        const field = dialog.getByRole("textbox", { name: "Shared state, as JSON" });
        assert.deepEqual(JSON.parse(await field.inputValue()), { step: 1, draft: "a" });

        await dialog.getByRole("button", { name: "Fork", exact: true }).click();
        await dialog.getByRole("alert").getByText("Change the state, or write a message.").waitFor();
        await field.fill('{\n  "step": 5,\n  draft: "b"\n}');
        await dialog
          .getByRole("alert")
          .getByText(/This is not JSON: line 3, column 3/)
          .waitFor();
        assert.equal(await dialog.getByRole("button", { name: "Fork", exact: true }).isDisabled(), true);
        await field.fill('{"step": 5}');
        await dialog.getByRole("textbox", { name: /Message for the agent/ }).fill("go on from five");
        await dialog.getByRole("button", { name: "Fork and run" }).click();

        await conversation(page).getByText("go on from five", { exact: true }).waitFor();
        const fork = await server.call("GET", `/sessions/${idOf(page)}`);
        assert.deepEqual([fork.parent, fork.fork_at], ["s", second]);
        const now = await server.snapshot(fork.id);
        assert.deepEqual(now.state.value, { step: 5 });
        assert.equal(
          now.messages.some((m) => m.text === "second question"),
          false,
        );
        assert.deepEqual((await server.snapshot("s")).state.value, { step: 2 }, "the session did not change");
      },
    ),

  "Enter does not close a dialog that asks for something": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "hello" });
        await server.append("s", turn("i1", "first question", "first answer"));
      },
      async (page, server) => {
        await conversation(page).getByText("first answer").waitFor();
        await page.keyboard.press("b");
        await page.getByRole("dialog", { name: "Fork here?" }).waitFor();
        await page.keyboard.press("Enter");
        await until(async () => idOf(page) !== "s", "Enter forks");
        const { sessions } = await server.call("GET", "/sessions?parent=s");
        assert.equal(sessions.length, 1);
      },
    ),

  "single keys do what they are for from the first moment on": () =>
    onPage(
      "/",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "hello" });
        await server.append("s", turn("i1", "first question", "first answer"));
      },
      async (page, server) => {
        // The clock of the page stands still near its start, as if it had just loaded.
        await page.addInitScript(() => {
          performance.now = () => 20;
        });
        await page.goto(`${server.url}/s/s`);
        await conversation(page).getByText("first answer").waitFor();
        await page.keyboard.press("e");
        await page.keyboard.press("t");
        await conversation(page).getByText("first answer").waitFor();
        assert.equal(new URL(page.url()).searchParams.get("view"), null);
      },
    ),

  "axe finds no fault in the dialogs of a session, in both themes and on a phone": async () => {
    for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, phone]) {
      await onPage(
        "/s/s",
        async (server) => {
          await server.session({ id: "s", title: "A talk", agent: "hello" });
          await server.append("s", turn("i1", "first question", "first answer"));
        },
        async (page) => {
          await conversation(page).getByText("first answer").waitFor();
          for (const [open, name] of [
            [() => page.keyboard.press("n"), "New session"],
            [() => page.getByRole("button", { name: "Share" }).click(), "Share"],
            [
              async () => {
                await conversation(page).getByText("first question", { exact: true }).click();
                await page.getByRole("button", { name: "Edit and run again" }).click();
              },
              "Edit and run again",
            ],
            [
              async () => {
                await page.getByRole("button", { name: "More for this session" }).click();
                assert.deepEqual(await faults(page), [], "the menu");
                await page.getByRole("menuitem", { name: "Rename…" }).click();
              },
              "Rename the session",
            ],
          ]) {
            await open();
            await page.getByRole("dialog", { name }).waitFor();
            assert.deepEqual(await faults(page), [], name);
            await page.keyboard.press("Escape");
            await page.getByRole("dialog").waitFor({ state: "detached" });
          }
        },
        { ...options, bypassCSP: true },
      );
    }
  },
};
