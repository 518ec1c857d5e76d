// The events view: channels, offsets, and an event in the form of each protocol.
import assert from "node:assert/strict";
import { onPage, Server, turn, until, visitor } from "./lab.mjs";

const events = (page) => page.getByRole("region", { name: "Events" });
const listed = (page) =>
  events(page)
    .getByRole("button", { name: /^\d+ / })
    .evaluateAll((all) => all.map((b) => Number(b.innerText.match(/\d+/)[0])));

async function mixed(server) {
  await server.session({ id: "s", title: "All channels" });
  const run = { invocation: "w1" };
  await server.append("s", [
    ...turn("i1", "first question", ["first ", "answer"]),
    { type: "RUN_STARTED", ...run, data: { threadId: "main", runId: "w1" } },
    { type: "TOOL_CALL_START", ...run, data: { toolCallId: "c1", toolCallName: "Bash" } },
    { type: "TOOL_CALL_ARGS", ...run, data: { toolCallId: "c1", delta: '{"command":"ls"}' } },
    { type: "TOOL_CALL_END", ...run, data: { toolCallId: "c1" } },
    { type: "TOOL_CALL_RESULT", ...run, data: { toolCallId: "c1", messageId: "r1", content: "a.txt" } },
    { type: "workflow.entered", ...run, data: { element: "Task_1" } },
    { type: "terminal.output", ...run, data: { terminal: "t", data: "hello\r\n" } },
    { type: "presence.joined", data: { user: "ada" } },
    { type: "RUN_FINISHED", ...run, data: { threadId: "main", runId: "w1" } },
  ]);
}

async function long(server) {
  await server.session({ id: "s", title: "A talk" });
  await server.append("s", Array.from({ length: 100 }, (_, i) => turn(`i${i}`, `ask ${i}`, `say ${i}`)).flat());
}

export const checks = {
  "events: the filters of six channels work, and offsets have no gap": () =>
    onPage("/s/s?view=events", mixed, async (page, server) => {
      await events(page).getByText("session.created").waitFor();
      const all = (await server.call("GET", "/sessions/s/events?limit=100")).events;
      const dense = async () => (await listed(page)).join() === all.map((e) => e.offset).join();
      await until(dense, "every offset is listed once");
      for (const channel of ["chunks", "toolCalls", "agentState", "workflow", "terminal", "presence"]) {
        const button = page.getByRole("button", { name: channel, exact: true });
        await button.click();
        const wanted = all.filter((e) => e.channel === channel).map((e) => e.offset);
        assert.ok(wanted.length > 0, `${channel} has events`);
        let seen;
        await until(
          async () => {
            seen = await listed(page);
            return seen.join() === wanted.join();
          },
          `${channel} is ${wanted}`,
          () => `but ${seen}`,
        );
        await button.click();
        await until(dense, "all events are listed again");
      }
    }),

  "events: a list opened without height scrolls to the playhead once it is visible": async () => {
    const server = await Server.start();
    await long(server);
    const v = await visitor(server);
    await v.page.addInitScript(() => {
      const hide = new CSSStyleSheet();
      hide.replaceSync('[aria-label="Events"] { display: none }');
      document.adoptedStyleSheets = [hide];
    });
    await v.page.goto(`${server.url}/s/s?view=events`);
    await v.page.getByText(/^601 events$/).waitFor();
    await v.page.evaluate(() => new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(ok))));
    await v.page.evaluate(() => {
      document.adoptedStyleSheets = [];
    });
    await events(v.page).getByRole("button", { name: /^600 / }).waitFor();
    await v.end();
    await server.stop();
  },

  "events: the end stays in view when the list gets smaller": () =>
    onPage("/s/s?view=events", long, async (page) => {
      const last = events(page).getByRole("button", { name: /^600 / });
      await last.waitFor();
      await page.setViewportSize({ width: 1280, height: 600 });
      await until(async () => {
        const [list, row] = [await events(page).boundingBox(), await last.boundingBox()];
        return row && row.y + row.height <= list.y + list.height + 1;
      }, "the last event is in view");
    }),

  "events: From offset shows that event and later ones": () =>
    onPage("/s/s?view=events", long, async (page) => {
      const from = async (n) => {
        await page.getByLabel("From offset").fill(String(n));
        await page.getByRole("button", { name: "Go", exact: true }).click();
      };
      await events(page).getByRole("button", { name: /^600 / }).waitFor();
      await from(212);
      await until(async () => {
        const top = await events(page).boundingBox();
        const row = await events(page).getByRole("button", { name: /^212 / }).boundingBox();
        return row && Math.abs(row.y - top.y) < 40;
      }, "it is at the top");
      await page.getByLabel("Type").fill("message.added");
      await page.getByText(/^64 matching events from offset 212$/).waitFor();
      await until(async () => (await listed(page))[0] >= 212, "no event is earlier");
    }),

  "events: the event at the playhead is marked and stays in view while it plays": () =>
    onPage("/s/s?view=events&at=3", mixed, async (page) => {
      const current = events(page).locator("[aria-current=true]");
      await until(async () => /^2\s/.test(await current.innerText()), "event 2 is marked");
      await page.keyboard.press("Alt+.");
      await until(async () => /^3\s/.test(await current.innerText()), "the mark moves");
      await page.keyboard.press(" ");
      await until(async () => /^16\s/.test(await current.innerText()), "it plays to the end");
    }),

  "events: an event is shown as each protocol sends it, and copied as NDJSON or curl": () =>
    onPage("/s/s?view=events", mixed, async (page, _server, v) => {
      await v.context.grantPermissions(["clipboard-read", "clipboard-write"]);
      const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
      await events(page).getByRole("button", { name: /^12 / }).click();
      await events(page).getByLabel("event 12", { exact: true }).getByText('"offset": 12').waitFor();
      await page.getByRole("button", { name: "As a Durable Stream" }).click();
      const durable = events(page).getByLabel("event 12 as a Durable Stream");
      await durable.getByText(/Stream-Next-Offset: 0000000000000013_0000000000000000/).waitFor();
      await durable.getByText(/"content":"a.txt"/).waitFor();
      await page.getByRole("button", { name: "As a task event" }).click();
      await events(page).getByLabel("event 12 as a task event").getByText("tool_complete").waitFor();
      await events(page).getByRole("button", { name: "Copy as NDJSON" }).click();
      await until(async () => (await clipboard()).startsWith('{"offset":12,'), "the event is copied");
      await events(page).getByRole("button", { name: "Copy curl" }).click();
      await until(async () => (await clipboard()).startsWith("curl "), "the command is copied");
      const url = (await clipboard()).match(/'(.*)'/)[1];
      assert.equal((await (await fetch(url)).json()).events[0].offset, 12);
      await page.getByRole("button", { name: "toolCalls", exact: true }).click();
      await page.getByText("4 matching events").waitFor();
      await page.getByRole("button", { name: "Copy as NDJSON" }).first().click();
      await until(async () => (await clipboard()).trim().split("\n").length === 4, "the listed events are copied");
    }),
};
