// Sessions as a whole: rename, star, tag, archive, close, delete, and share.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binary, conversation, faults, onPage, turn, until, visitor } from "./lab.mjs";

const row = (page, id) => page.locator(`[data-session=${id}]`);
const listed = (page, id) => row(page, id).count();

async function choose(page, id, item) {
  await row(page, id)
    .getByRole("button", { name: /^More for/ })
    .click();
  await page.getByRole("menuitem", { name: item }).click();
}

async function three(server) {
  for (const id of ["one", "two", "three"]) await server.session({ id, title: `Session ${id}`, agent: "hello" });
}

/** The text of what the page says about a completed action. */
const said = (page, text) => page.getByRole("status").getByText(text).waitFor();

/** Whether a session is there. */
async function exists(server, id) {
  return (await server.call("GET", "/sessions")).sessions.some((s) => s.id === id);
}

/** A server with access control, a token of an owner, and its session. */
async function withAccess(check, options = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tapedeck-auth-"));
  const file = join(folder, "auth.toml");
  const token = execFileSync(binary, ["token", "create", "--auth", file, "--subject", "ada"], {
    encoding: "utf8",
  }).match(/td_\S+/)[0];
  try {
    await onPage(
      "/healthz",
      async () => {},
      async (page, server, v) => {
        const send = async (method, path, body) => {
          const answer = await fetch(`${server.url}/api/v1${path}`, {
            method,
            headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
            body: JSON.stringify(body),
          });
          assert.ok(answer.ok, `${path}: ${answer.status}`);
        };
        await send("POST", "/sessions", { id: "s", title: "A talk", agent: "hello" });
        await send("POST", "/sessions/s/events", [
          ...turn("i1", "first question", "first answer"),
          ...turn("i2", "second question", "second answer"),
        ]);
        v.expected.push(/40[14]/);
        v.wrong.splice(0); // the first page has no icon
        await page.goto(`${server.url}/login`);
        await page.getByLabel("Your token").fill(token);
        await page.getByRole("button", { name: "Log in" }).click();
        await page.waitForURL(`${server.url}/`);
        await check(page, server);
      },
      { ...options, args: ["--auth", file] },
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export const checks = {
  "list: a session is renamed, starred and tagged from its menu, and found by star and tag": () =>
    onPage("/", three, async (page, server) => {
      await choose(page, "one", "Rename…");
      const dialog = page.getByRole("dialog", { name: "Rename the session" });
      await dialog.getByRole("textbox", { name: "Title" }).fill("Another title");
      await page.keyboard.press("Enter");
      await row(page, "one").getByText("Another title").waitFor();
      await choose(page, "one", "Star");
      await row(page, "one").getByRole("img", { name: "Starred" }).waitFor();
      await choose(page, "two", "Tags…");
      await page.getByRole("textbox", { name: /^Tags/ }).fill("backend urgent");
      await page.keyboard.press("Enter");
      await row(page, "two").getByText("backend").waitFor();
      assert.deepEqual((await server.call("GET", "/sessions/two")).labels, {
        "tag.backend": "true",
        "tag.urgent": "true",
      });
      await page.getByLabel("Show").selectOption("starred");
      await until(async () => (await listed(page, "two")) === 0, "only starred ones are listed");
      await row(page, "one").waitFor();
      await page.goto(`${server.url}/?tag=urgent`);
      await row(page, "two").waitFor();
      assert.equal(await listed(page, "one"), 0);
      await page.getByRole("button", { name: "All tags" }).click();
      await row(page, "one").waitFor();
    }),

  "list: an archived session is listed in the archive only, and Undo brings it back": () =>
    onPage("/", three, async (page) => {
      await choose(page, "one", "Archive");
      await until(async () => (await listed(page, "one")) === 0, "it is not listed");
      await said(page, /“Session one” archived/);
      await page.getByRole("button", { name: "Undo" }).click();
      await row(page, "one").waitFor();
      await choose(page, "one", "Archive");
      await until(async () => (await listed(page, "one")) === 0, "it is not listed");
      await page.getByLabel("Show").selectOption("archived");
      await row(page, "one").waitFor();
      assert.equal(await listed(page, "two"), 0);
      await choose(page, "one", "Take out of the archive");
      await until(async () => (await listed(page, "one")) === 0, "it left the archive");
    }),

  "list: a deletion can be undone for some seconds, and then the session is deleted": () =>
    onPage("/", three, async (page, server) => {
      await page.clock.install();
      await page.reload();
      await row(page, "one").waitFor();
      await choose(page, "one", "Delete");
      await said(page, /will be deleted in 8 seconds/);
      assert.equal(await listed(page, "one"), 0);
      await page.clock.runFor(7000);
      assert.ok(await exists(server, "one"), "the server was not called yet");
      await page.getByRole("button", { name: "Undo" }).click();
      await row(page, "one").waitFor();
      await page.clock.runFor(9000);
      assert.ok(await exists(server, "one"), "it was undone");
      await choose(page, "one", "Delete");
      await page.clock.runFor(9000);
      await until(async () => !(await exists(server, "one")), "it is deleted");
      assert.equal(await listed(page, "one"), 0);
      await server.session({ id: "one", title: "One again", agent: "hello" });
      await row(page, "one").getByText("One again").click();
      await page.getByText("Connected, caught up").waitFor();
      await server.call("DELETE", "/sessions/one");
      await page.getByText("This session was deleted").waitFor();
      assert.equal(await page.getByLabel("Message to the agent").count(), 0);
      assert.equal(await page.getByRole("status", { name: "Connection" }).textContent(), "Deleted");
    }),

  "list: several sessions are archived, closed and deleted together": () =>
    onPage("/", three, async (page, server) => {
      await row(page, "one").getByRole("checkbox").check();
      await row(page, "two").getByRole("checkbox").check();
      const bar = page.getByRole("region", { name: "Marked sessions" });
      await bar.getByText("2 sessions marked").waitFor();
      assert.ok(await bar.getByRole("button", { name: "Compare" }).isEnabled());
      await bar.getByRole("button", { name: "More for the marked sessions" }).click();
      await page.getByRole("menuitem", { name: "Close…" }).click();
      await page.getByRole("dialog", { name: "Close?" }).getByRole("button", { name: "Close for good" }).click();
      await until(
        async () => (await server.call("GET", "/sessions?status=closed")).sessions.length === 2,
        "both are closed",
      );
      await bar.getByRole("button", { name: "More for the marked sessions" }).click();
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await said(page, /2 sessions will be deleted/);
      await row(page, "three").getByRole("checkbox").check();
      await bar.getByRole("button", { name: "Archive" }).click();
      await until(async () => (await page.locator("[data-session]").count()) === 0, "none is listed");
    }),

  "list: one Tab reaches the rows, and arrow keys their controls": () =>
    onPage("/", three, async (page) => {
      await row(page, "one").waitFor();
      await page.getByRole("region", { name: "List of sessions" }).focus();
      const inRow = () => page.evaluate(() => document.activeElement.closest("[data-session]")?.dataset.session);
      await page.keyboard.press("Tab");
      const first = await inRow();
      assert.ok(first);
      await page.keyboard.press("ArrowDown");
      await until(async () => ![undefined, first].includes(await inRow()), "the next row");
      const next = await inRow();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
      await page.getByRole("menuitem", { name: "Rename…" }).waitFor();
      await page.keyboard.press("End");
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Delete");
      await page.keyboard.press("Escape");
      assert.equal(await inRow(), next, "the focus is back");
      await page.keyboard.press("Tab");
      assert.notEqual(await inRow(), first, "Tab leaves the rows");
    }),

  "a session is managed and shared from its own page, in both themes and on a phone": async () => {
    for (const options of [
      { colorScheme: "light" },
      { colorScheme: "dark", viewport: { width: 390, height: 780 }, hasTouch: true },
    ])
      await onPage(
        "/s/s",
        async (server) => {
          await server.session({ id: "s", title: "A talk", agent: "hello" });
          await server.append("s", turn("i1", "first question", "first answer"));
        },
        async (page, server) => {
          await conversation(page).getByText("first answer").waitFor();
          await page.getByRole("button", { name: "Share" }).click();
          const dialog = page.getByRole("dialog", { name: "Share" });
          assert.equal(
            await dialog.getByRole("textbox", { name: "Link", exact: true }).inputValue(),
            `${server.url}/s/s`,
          );
          assert.match(
            await dialog.getByRole("textbox", { name: "Embed code" }).inputValue(),
            /<tapedeck-player src="http/,
          );
          assert.equal(await dialog.getByRole("button", { name: "Create link" }).count(), 0, "without access control");
          assert.deepEqual(await faults(page), []);
          await dialog.getByRole("button", { name: /recording/ }).click();
          const format = page.getByRole("dialog", { name: "Export" }).getByLabel("Format");
          assert.equal(await format.inputValue(), "html");
          await page.keyboard.press("Escape");
          await page.getByRole("button", { name: "More for this session" }).click();
          await page.getByRole("menuitem", { name: "Delete" }).click();
          await said(page, /will be deleted/);
          await page.getByRole("button", { name: "Undo" }).click();
          await row(page, "s").waitFor();
        },
        { ...options, bypassCSP: true },
      );
  },

  "a read-only link is made, opens a part of the session for others, and is revoked": () =>
    withAccess(async (page, server) => {
      await page.goto(`${server.url}/s/s?at=7`);
      await conversation(page).getByText("first answer").waitFor();
      await page.getByRole("button", { name: "Share" }).click();
      const dialog = page.getByRole("dialog", { name: "Share" });
      await dialog.getByLabel("For whom").fill("Bob");
      await dialog.getByRole("button", { name: "Create link" }).click();
      const link = await dialog.getByRole("textbox", { name: "Read-only link" }).inputValue();
      await dialog.getByText(/only the events before #7/).waitFor();

      const guest = await visitor(server);
      guest.expected.push(/401/, /403/, /404/);
      await guest.page.goto(link);
      await guest.page.getByText(/You can read it until/).waitFor();
      await guest.page.getByRole("button", { name: "Open the session" }).click();
      await conversation(guest.page).getByText("first answer").waitFor();
      assert.equal(await conversation(guest.page).getByText("second question").count(), 0, "the rest is not shown");
      await guest.page.getByText(/ada \(read-only\)/).waitFor();
      assert.ok(!guest.page.url().includes("tds_"), "the token is not in the address");

      await dialog.getByRole("button", { name: "Revoke Bob" }).click();
      await dialog.getByRole("button", { name: "Revoke Bob" }).waitFor({ state: "detached" });
      await guest.page.goto(`${server.url}/s/s`);
      await guest.page.getByLabel("Your token").waitFor();
      await guest.end();
    }),

  "a link logs nobody in as a user, and asks before it logs a user out": () =>
    withAccess(async (page, server) => {
      const forged = `tds_${Buffer.from(JSON.stringify({ role: "user", ses: "s", exp: 4e9 })).toString("base64url")}.x`;
      await page.goto(`${server.url}/login?next=%2Fs%2Fs#token=${forged}`);
      await page.getByText("You are logged in as ada").waitFor();
      assert.equal(await page.getByRole("button", { name: "Open the session" }).isVisible(), false);
      const reader = `tds_${Buffer.from(JSON.stringify({ role: "reader", ses: "s", exp: 4e9 })).toString("base64url")}.x`;
      await page.goto(`${server.url}/login?next=%2Fs%2Fs&again#token=${reader}`);
      await page.getByText(/This browser is logged out/).waitFor();
      await page.goto(`${server.url}/s/s`);
      await conversation(page).getByText("first answer").waitFor();
    }),

  "after a log-in the browser stays on this server, whatever the address says": () =>
    withAccess(async (page, server) => {
      for (const next of [
        "/.//evil.example/x",
        "//evil.example/x",
        "/\\\\evil.example",
        "https://evil.example/",
        `${server.url}//evil.example`,
      ]) {
        await page.goto(`${server.url}/login?next=${encodeURIComponent(next)}`);
        const on = page.getByRole("link", { name: /Go to the sessions/ });
        await on.waitFor();
        assert.equal(await on.getAttribute("href"), "/", next);
      }
    }),

  "the page shows who is logged in, and logs out": () =>
    withAccess(async (page, server) => {
      await page.getByText(/^Logged in as\s+ada$/).waitFor();
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByLabel("Your token").waitFor();
      await page.goto(server.url);
      await page.getByLabel("Your token").waitFor();
    }),
};
