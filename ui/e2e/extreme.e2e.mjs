// Sessions of extreme sizes and at bad moments: each page shows them calmly.
import assert from "node:assert/strict";
import { conversation, importExport, onPage, timed, turn, until } from "./lab.mjs";

/** No element of the page is wider than the window. */
async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px wider than the window`);
}

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true };
const arabic = "إصلاح البناء الأحمر في فرع الإصدار ".repeat(64).trim(); // 4 KB

/** A run that says something of a given size, and calls a tool that answers something. */
function large(invocation, text, output) {
  const all = turn(invocation, "a question", text);
  const event = (type, data) => ({ type, invocation, data });
  all.splice(
    -1,
    0,
    event("TOOL_CALL_START", { toolCallId: "c", toolCallName: "Bash" }),
    event("TOOL_CALL_ARGS", { toolCallId: "c", delta: '{"command":"cat all"}' }),
    event("TOOL_CALL_END", { toolCallId: "c" }),
    event("TOOL_CALL_RESULT", { messageId: "r", toolCallId: "c", content: output }),
  );
  return all;
}

const options = [
  { id: "yes", name: "Allow once", kind: "allow_once" },
  { id: "no", name: "Deny", kind: "reject_once" },
];

/** A session whose run asks a question. */
async function asking(server) {
  await server.session({ id: "s", title: "A question", agent: "hello" });
  const event = (type, data) => ({ type, invocation: "i1", data });
  await server.append("s", [
    event("message.added", { message: { id: "u1", role: "user", content: "do it" } }),
    event("RUN_STARTED", { threadId: "main", runId: "i1" }),
    event("permission.requested", { id: "p1", message: "May I delete it?", options }),
  ]);
}

const ended = { type: "RUN_FINISHED", invocation: "i1", data: { threadId: "main", runId: "i1" } };

export const checks = {
  "ten thousand turns without text are listed, sought and drawn": () =>
    onPage(
      "/",
      async (server) => {
        const events = [[0, "session.created", { title: "Silent" }]];
        for (let i = 0; i < 10_000; i++) {
          const run = { threadId: "main", runId: `i${i}` };
          events.push([i * 1000, "RUN_STARTED", run, { invocation: run.runId }]);
          events.push([i * 1000 + 500, "RUN_FINISHED", run, { invocation: run.runId }]);
        }
        await importExport(server, timed("s", events));
      },
      async (page, server) => {
        await page.getByText("Silent").first().waitFor();
        await page.goto(`${server.url}/s/s?panel=outline`);
        await conversation(page).getByText("Run complete").first().waitFor();
        assert.ok((await page.locator("body *").count()) < 800, "few elements");
        await page.keyboard.press("Home");
        await page.getByText("event 0 of 20,001").or(page.getByText("event 1 of 20,001")).waitFor();
        for (const view of ["timing", "branches", "events"]) {
          await page.goto(`${server.url}/s/s?view=${view}`);
          await page.getByRole("tab", { name: new RegExp(view, "i"), selected: true }).waitFor();
          await until(async () => (await page.getByText(/^Loading/).count()) === 0, `${view} is loaded`);
          assert.equal(await page.getByRole("alert").count(), 0, view);
          await fits(page);
        }
      },
    ),

  "a long Arabic title and a task of 4 KB do not widen a page, and do not turn the text around them": () =>
    onPage(
      "/",
      async (server) => {
        assert.ok(Buffer.byteLength(arabic) > 4000);
        await server.session({ id: "s", title: arabic.slice(0, 270), agent: "coder" }); // the server allows 512 bytes
        await server.append("s", turn("i1", arabic, "نعم"));
        await server.call("POST", "/sessions/s/fork", { id: "f", title: arabic.slice(0, 250) });
      },
      async (page, server) => {
        for (const size of [phone.viewport, { width: 1280, height: 800 }]) {
          await page.setViewportSize(size);
          for (const path of ["/", "/s/s", "/s/s?view=branches", "/compare?a=s&b=f", "/s/s?panel=outline"]) {
            await page.goto(server.url + path);
            await page.getByText(/إصلاح/).filter({ visible: true }).first().waitFor();
            await fits(page);
            const { height } = (await page.getByRole("heading").first().boundingBox()) ?? { height: 0 };
            assert.ok(height < 200, `${path}: the heading is ${height} px high`);
          }
        }
        await page.goto(`${server.url}/s/s`);
        const title = page.getByRole("heading", { level: 1 });
        await title.waitFor();
        const isolated = title.locator("[dir=auto]");
        assert.equal(await isolated.evaluate((el) => getComputedStyle(el).direction), "rtl");
        assert.equal(await title.evaluate((el) => getComputedStyle(el).direction), "ltr", "only the title");
      },
    ),

  "an answer of a tool of 30 MB and a message of one line of 5 MB are cut, and the page stays usable": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "Large", agent: "coder" });
        await server.append("s", large("i1", "x".repeat(5_000_000), "0123456789\n".repeat(2_800_000)));
        await server.append("s", turn("i2", "still there?", "yes, I am"));
      },
      async (page, server) => {
        await conversation(page).getByText("yes, I am").waitFor();
        const tool = conversation(page).getByRole("button", { name: /^Bash/ });
        await tool.click();
        await conversation(page).getByText("0123456789").first().waitFor();
        await fits(page);
        const shown = await page.evaluate(() => document.body.innerText.length);
        assert.ok(shown < 300_000, `the page shows ${shown} characters`);
        await page.goto(`${server.url}/s/s?view=events&type=TOOL_CALL_RESULT`);
        await page.getByRole("button", { name: /^9 / }).click();
        await page.getByText("0123456789").first().waitFor();
        assert.ok((await page.evaluate(() => document.body.innerText.length)) < 500_000);
      },
    ),

  "a question of a run that has ended meanwhile is calm, also if its answer comes too late": () =>
    onPage("/s/s", asking, async (page, server, v) => {
      v.expected.push(/409|404|400/);
      const allow = conversation(page).getByRole("button", { name: /^Allow once/ });
      await allow.waitFor();
      let release;
      const held = new Promise((ok) => (release = ok));
      let clicked;
      const sent = new Promise((ok) => (clicked = ok));
      await page.route(/\/permissions\//, async (r) => {
        clicked();
        await held;
        await r.continue();
      });
      await allow.click();
      await sent;
      await server.append("s", [ended]);
      await conversation(page).getByText("Run complete").waitFor();
      release();
      const said = page
        .getByRole("alert")
        .or(page.getByRole("status"))
        .filter({ hasText: /ended|answered|open|waits/i });
      await said.first().waitFor();
      await until(
        async () => (await allow.count()) === 0 || !(await allow.isEnabled()),
        "it cannot be answered any more",
      );
      await page.goto(`${server.url}/inbox`);
      await page
        .getByText("No questions wait")
        .or(page.getByText(/nothing|no question/i))
        .first()
        .waitFor();
      await page.goto(`${server.url}/s/s?ask=3`);
      await conversation(page).getByText("May I delete it?").waitFor();
      assert.equal(await allow.count(), 0);
    }),
};
