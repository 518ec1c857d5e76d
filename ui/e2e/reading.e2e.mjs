// Reading and judging a session: outline, what is unfolded, changes, copying; and what agents used.
import assert from "node:assert/strict";
import { conversation, faults, onPage, turn, until } from "./lab.mjs";

const tool = (invocation, id, name, input, result, error) => [
  { type: "TOOL_CALL_START", invocation, data: { toolCallId: id, toolCallName: name } },
  { type: "TOOL_CALL_ARGS", invocation, data: { toolCallId: id, delta: JSON.stringify(input) } },
  { type: "TOOL_CALL_END", invocation, data: { toolCallId: id } },
  {
    type: "TOOL_CALL_RESULT",
    invocation,
    data: { toolCallId: id, messageId: `r_${id}`, content: result, ...(error ? { error } : {}) },
  },
];

/** A session of three turns: one reads, one edits, one fails. */
async function worked(server) {
  await server.session({ id: "s", title: "A talk", agent: "coder" });
  const [ask1, begin1, ...rest1] = turn("i1", "look at the file", "It says one.");
  const [ask2, begin2, ...rest2] = turn("i2", "change it", "Done.");
  const [ask3, begin3] = turn("i3", "run the tests", "");
  await server.append("s", [
    ask1,
    begin1,
    ...tool("i1", "c1", "Read", { file_path: "a.txt" }, "one\ntwo"),
    ...rest1,
    ask2,
    begin2,
    ...tool("i2", "c2", "Edit", { file_path: "a.txt", old_string: "one", new_string: "first try" }, "ok"),
    ...tool("i2", "c3", "Edit", { file_path: "a.txt", old_string: "first try", new_string: "uno" }, "ok"),
    ...tool("i2", "c4", "Write", { file_path: "new.txt", content: "hello\n" }, "ok"),
    ...rest2,
    ask3,
    begin3,
    ...tool("i3", "c5", "Bash", { command: "make test" }, "FAIL", "exit 1"),
    {
      type: "usage.reported",
      invocation: "i3",
      data: { model: "big-model", inputTokens: 1400, outputTokens: 100, costUsd: 2.5 },
    },
    { type: "RUN_ERROR", invocation: "i3", data: { message: "It broke" } },
  ]);
}

const panel = (page) => page.getByRole("complementary", { name: "Session details" });
const head = (page, name) => conversation(page).getByRole("button", { name });
const isOpen = (page, name) => head(page, name).first().getAttribute("aria-expanded");

/** All rows of the session have elements. */
const tall = { viewport: { width: 1280, height: 2400 } };

const themes = [
  { colorScheme: "light" },
  { colorScheme: "dark" },
  { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true },
];

export const checks = {
  "failed tools and edits are open, and all can be expanded and collapsed": () =>
    onPage(
      "/s/s",
      worked,
      async (page) => {
        await head(page, /^Bash/).waitFor();
        assert.equal(await isOpen(page, /^Bash/), "true");
        assert.equal(await isOpen(page, /^Edit/), "true");
        assert.equal(await isOpen(page, /^Write/), "true");
        assert.equal(await isOpen(page, /^Read/), "false");
        const choose = async (name) => {
          await page.getByRole("button", { name: "How the conversation is shown" }).click();
          await page.getByRole("menuitemcheckbox", { name }).click();
        };
        await choose("Expand all");
        await until(async () => (await isOpen(page, /^Read/)) === "true", "all are expanded");
        await choose("Collapse all");
        await until(async () => (await isOpen(page, /^Bash/)) === "false", "all are collapsed");
        await page.keyboard.press("x");
        await until(async () => (await isOpen(page, /^Bash/)) === "true", "x: the usual ones");
        assert.equal(await isOpen(page, /^Read/), "false");
        await head(page, /^Bash/).click();
        assert.equal(await isOpen(page, /^Bash/), "false");
      },
      tall,
    ),

  "compact rows take less space, and the browser remembers them": () =>
    onPage(
      "/s/s",
      worked,
      async (page) => {
        const height = async () => (await conversation(page).getByRole("list").first().boundingBox()).height;
        await head(page, /^Bash/).waitFor();
        const roomy = await height();
        await page.keyboard.press("d");
        await until(async () => (await height()) < roomy - 20, "rows are compact");
        await page.reload();
        await head(page, /^Bash/).waitFor();
        await until(async () => (await height()) < roomy - 20, "rows are still compact");
      },
      tall,
    ),

  "outline: the turns of a session, with their end, their calls and failures, lead to them": () =>
    onPage("/s/s?panel=outline", worked, async (page) => {
      const turns = panel(page).getByRole("list", { name: "Turns" }).getByRole("button");
      await until(async () => (await turns.count()) === 3, "three turns");
      assert.match(await turns.nth(1).innerText(), /change it[\s\S]*Complete[\s\S]*3 calls/);
      assert.match(await turns.nth(2).innerText(), /run the tests[\s\S]*Failed[\s\S]*1 failed/);
      await turns.nth(0).click();
      await conversation(page).locator("[data-offset].border-accent").getByText("look at the file").waitFor();
      const { at, head } = await page
        .getByText(/^event [\d,]+ of [\d,]+$/)
        .innerText()
        .then((t) => ({ at: t.split(" ")[1], head: t.split(" ")[3] }));
      assert.equal(at, head, "the playhead stays where it is");
    }),

  "changes: what tools changed is one diff for each file, as of the playhead": () =>
    onPage("/s/s?panel=changes", worked, async (page) => {
      const file = panel(page).getByRole("group", { name: "Changes to a.txt" });
      await until(async () => /- ?one\s+\+ ?uno/.test(await file.innerText()), "two edits are one change");
      await panel(page).getByText("2 files: +2 −1").waitFor();
      await panel(page).getByRole("group", { name: "Changes to new.txt" }).getByText("hello").waitFor();
      await panel(page).getByRole("button", { name: "Go to the last one" }).first().click();
      const later = panel(page).getByRole("group", { name: "Changes to new.txt" });
      await later.waitFor({ state: "detached" });
      assert.match(await file.innerText(), /uno/);
    }),

  "a command, an output and the changes are copied with a button": () =>
    onPage(
      "/s/s?panel=changes",
      worked,
      async (page, server) => {
        await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.url });
        const copied = () => page.evaluate(() => navigator.clipboard.readText());
        const row = conversation(page)
          .locator("[data-offset]")
          .filter({ has: page.getByText("make test") });
        await row.getByRole("button", { name: "Copy: Arguments" }).click();
        await until(async () => (await copied()) === "make test", "the command is copied");
        await panel(page).getByRole("button", { name: "Copy the changes as a diff" }).click();
        await until(async () => (await copied()).includes("+++ b/a.txt\n@@ @@\n-one\n+uno\n"), "the diff is copied");
      },
      tall,
    ),

  "usage: tokens, money and failures by day, agent and model, in all times and of one agent": async () => {
    for (const options of themes)
      await onPage(
        "/usage",
        async (server) => {
          await worked(server);
          await server.session({ id: "other", agent: "hello" });
          await server.append("other", turn("o1", "hi", "hello"));
        },
        async (page) => {
          const agents = page.getByRole("region", { name: "Agents" });
          await agents.getByRole("row", { name: /coder/ }).waitFor();
          const cells = (row) => row.getByRole("cell").allInnerTexts();
          assert.deepEqual(await cells(agents.getByRole("row", { name: /coder/ })), [
            "3",
            "1",
            "5",
            "1",
            "1.4k",
            "100",
            "$2.50",
          ]);
          const models = page.getByRole("region", { name: "Models" });
          assert.equal((await cells(models.getByRole("row", { name: /big-model/ })))[6], "$2.50");
          await page
            .getByRole("region", { name: "Days" })
            .getByRole("row", { name: /^\d{4}-\d\d-\d\d/ })
            .waitFor();
          assert.deepEqual(await faults(page), []);
          assert.ok(
            await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
            "nothing is cut at the side",
          );
          await agents.getByRole("button", { name: "hello" }).click();
          await until(async () => (await agents.getByRole("row").count()) === 2, "only one agent");
          assert.match(page.url(), /agent=hello/);
          await page.getByRole("button", { name: "7 days" }).click();
          await until(() => /days=7/.test(page.url()), "the address keeps the time");
        },
        { ...options, bypassCSP: true },
      );
  },

  "usage: without a run the page says so": () =>
    onPage(
      "/usage",
      async () => {},
      async (page) => {
        await page.getByText("Nothing was used in this time").waitFor();
      },
    ),

  "the panels for judging have no fault of axe, in both themes and on a phone": async () => {
    for (const options of themes)
      for (const name of ["outline", "changes"])
        await onPage(
          `/s/s?panel=${name}`,
          worked,
          async (page) => {
            const shown =
              name === "outline" ? panel(page).getByRole("list", { name: "Turns" }) : panel(page).getByText("2 files");
            await shown.first().waitFor();
            assert.deepEqual(await faults(page), []);
          },
          { ...options, bypassCSP: true },
        );
  },

  "timing: turns, calls of models, tools and sub-agents have bars, and a call shows what the model was sent":
    async () => {
      for (const options of themes)
        await onPage(
          "/s/s?view=timing",
          worked,
          async (page) => {
            const lines = page.getByRole("region", { name: "Timing" }).getByRole("button");
            await until(async () => (await lines.count()) >= 11, "all lines");
            const names = (await lines.allInnerTexts()).map((t) => t.replaceAll(/\s+/g, " "));
            assert.match(names[0], /Complete: Turn 1/);
            assert.match(names[1], /Model call 1/);
            assert.match(names[2], /Read a\.txt/);
            const failed = lines.filter({ hasText: "Turn 3" });
            assert.match(await failed.innerText(), /Failed/);
            const second = lines.filter({ hasText: "Model call 2" }).first();
            await second.click();
            const dialog = page.getByRole("dialog", { name: "Model call 2" });
            const messages = dialog.getByRole("list", { name: "Messages" }).getByRole("listitem");
            await messages.first().waitFor();
            assert.deepEqual(
              (await messages.allInnerTexts()).map((t) => t.split("\n")[0]),
              ["User", "Agent", "Results of tools"],
            );
            await dialog.getByText("not reported the tokens").waitFor();
            assert.match(
              await dialog.getByRole("list", { name: "Shares of the context" }).innerText(),
              /Results of tools/,
            );
            assert.deepEqual(await faults(page), []);
            await dialog.getByRole("button", { name: "Go to its answer" }).click();
            await conversation(page).waitFor();
            await page.waitForURL(/at=\d+/); // the playhead is written there with a delay
          },
          { ...options, bypassCSP: true },
        );
    },

  "timing: the tokens and the cost of a call are those that its agent reported": () =>
    onPage("/s/s?view=timing", worked, async (page) => {
      const lines = page.getByRole("region", { name: "Timing" }).getByRole("button");
      await lines.filter({ hasText: "1.4k → 100 tokens · big-model" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("$2.50").waitFor();
      await dialog.getByText("1,400").waitFor();
    }),

  "the panel is made wider with the mouse and with keys, and stays so": () =>
    onPage("/s/s", worked, async (page) => {
      const width = async () => (await panel(page).boundingBox()).width;
      const edge = page.getByRole("separator", { name: "Width of the panel" });
      await edge.waitFor();
      const before = await width();
      const box = await edge.boundingBox();
      await page.mouse.move(box.x + 4, box.y + 100);
      await page.mouse.down();
      await page.mouse.move(box.x - 96, box.y + 100, { steps: 4 });
      await page.mouse.up();
      await until(async () => Math.abs((await width()) - before - 100) < 6, "it is 100 pixels wider");
      await edge.focus();
      await page.keyboard.press("ArrowRight");
      await until(async () => (await width()) < before + 90, "a key makes it narrower");
      const kept = await width();
      await page.reload();
      await edge.waitFor();
      assert.equal(await width(), kept);
    }),
};
