// The list of sessions.
import assert from "node:assert/strict";
import { faults, importExport, onPage, timed, turn, until } from "./lab.mjs";

const rows = (page) => page.locator("[data-session]");
const ids = (page) => rows(page).evaluateAll((all) => all.map((r) => r.dataset.session));

/** Waits until exactly these sessions are listed. */
async function lists(page, wanted) {
  let last;
  await until(
    async () => {
      last = (await ids(page)).sort();
      return last.join() === [...wanted].sort().join();
    },
    `the list has ${wanted}`,
    () => `but ${last}`,
  );
}

/** Creates many sessions. Concurrent requests are faster: the server commits them together. */
async function many(server, n) {
  let made = 0;
  const work = async () => {
    while (made < n) await server.session({ id: `n${made++}` });
  };
  await Promise.all(Array.from({ length: 200 }, work));
}

/** Sessions that wait, run, failed, and are old. */
async function several(server) {
  await importExport(server, timed("old", [[0, "session.created", { title: "A long time ago" }]], "idle"));
  await server.session({ id: "dear", title: "Money", agent: "coder" });
  await server.append("dear", [
    ...turn("i1", "Tell me of whales", "they sing"),
    { type: "message.added", invocation: "i2", data: { message: { id: "q", role: "user", content: "And this?" } } },
    { type: "RUN_STARTED", invocation: "i2" },
    { type: "TOOL_CALL_START", invocation: "i2", data: { toolCallId: "c", toolCallName: "Bash" } },
    { type: "TOOL_CALL_END", invocation: "i2", data: { toolCallId: "c" } },
    {
      type: "TOOL_CALL_RESULT",
      invocation: "i2",
      data: { toolCallId: "c", messageId: "r", content: "no", error: "no" },
    },
    {
      type: "usage.reported",
      invocation: "i2",
      data: { model: "big-model", inputTokens: 1400, outputTokens: 100, costUsd: 2.5 },
    },
    { type: "RUN_ERROR", invocation: "i2", data: { message: "It broke" } },
  ]);
  await new Promise((ok) => setTimeout(ok, 1100)); // activity is kept to a second
  await server.session({ id: "recent", title: "Yes", agent: "coder" });
  await server.append("recent", turn("i1", "about whales", "whales sing"));
  for (const id of ["working", "asking"]) {
    await server.session({ id, title: `It is ${id}`, agent: "coder" });
    await server.append(id, [{ type: "RUN_STARTED", invocation: "i" }]);
  }
  await server.append("asking", [
    {
      type: "permission.requested",
      invocation: "i",
      data: { id: "p", message: "May I?", options: [{ id: "y", name: "Yes" }] },
    },
  ]);
}

export const checks = {
  "first run: the demo fills the list by itself": () =>
    onPage(
      "/",
      async () => {},
      async (page) => {
        for (const id of ["demo_hello", "demo_failed", "demo_live", "demo_agui", "demo_a2a"])
          await page.locator(`[data-session=${id}]`).waitFor();
        await page
          .locator("[data-session=demo_failed]")
          .getByText(/Failed/)
          .waitFor();
        await page
          .locator("[data-session=demo_live]")
          .getByText(/Running/)
          .waitFor();
        await page.getByRole("link", { name: /A first hello/ }).click();
        await page.getByRole("region", { name: "Conversation" }).getByText("Say hello", { exact: true }).waitFor();
      },
      { args: ["--demo"] },
    ),

  "list: filters by status, agent, day and text are kept in the URL and in the browser history": () =>
    onPage(
      "/",
      async (server) => {
        await server.session({ id: "talk", title: "A talk", agent: "hello" });
        await server.append("talk", turn("i1", "about whales", "they sing"));
        await server.session({ id: "plan", title: "A plan", agent: "coder" });
        await importExport(server, timed("old", [[0, "session.created", { title: "Long ago" }]], "idle"));
      },
      async (page) => {
        await lists(page, ["talk", "plan", "old"]);
        await page.getByLabel("Status").selectOption("complete");
        await lists(page, ["talk"]);
        await page.getByRole("button", { name: "Clear" }).click();
        await lists(page, ["talk", "plan", "old"]);
        await page.getByLabel("Agent").selectOption("coder");
        await lists(page, ["plan"]);
        await page.reload();
        await lists(page, ["plan"]);
        assert.equal(await page.getByLabel("Agent").inputValue(), "coder");
        await page.getByRole("button", { name: "Clear" }).click();
        await page.getByRole("searchbox", { name: "Search" }).fill("whales");
        await lists(page, ["talk"]);
        await page.getByRole("link", { name: "A talk talk" }).click();
        await page.getByRole("region", { name: "Conversation" }).waitFor();
        await page.goBack();
        await lists(page, ["talk"]);
        assert.equal(await page.getByRole("searchbox", { name: "Search" }).inputValue(), "whales");
        await page.getByRole("button", { name: "Clear" }).click();
        await lists(page, ["talk", "plan", "old"]);
        await page.getByLabel("From").fill("2026-01-05");
        await page.getByLabel("Before").fill("2026-01-06");
        await lists(page, ["old"]);
        await page.goBack();
        await page.goForward();
        await lists(page, ["old"]);
      },
    ),

  "list: what waits and what runs is on top, and a click on their number lists only them": () =>
    onPage("/", several, async (page) => {
      const top = ["asking", "working", "recent", "dear", "old"];
      await until(
        async () => (await ids(page)).join() === top.join(),
        "the order by activity",
        () => ids(page),
      );
      for (const name of ["Waiting for you", "Running", "Today"])
        await page.getByRole("heading", { name, exact: true }).waitFor();
      await page.getByRole("button", { name: "1 waiting" }).click();
      await lists(page, ["asking"]);
      assert.equal(await page.getByLabel("Status").inputValue(), "waiting");
    }),

  "list: the heads of the columns sort, say so, and the address keeps it; a row has model, tokens, cost, last message and failed tools":
    () =>
      onPage("/", several, async (page) => {
        const row = page.locator("[data-session=dear]");
        await row.waitFor();
        const shown = await row.innerText();
        for (const text of ["big-model", "1.5k", "$2.50", "✕ 1", "You: And this?"])
          assert.ok(shown.includes(text), text);
        const head = (name) => page.getByRole("columnheader", { name });
        const first = (id) =>
          until(
            async () => (await ids(page))[0] === id,
            `${id} is first`,
            () => ids(page),
          );
        assert.equal(await head("Activity").getAttribute("aria-sort"), "descending");
        await head("Cost").getByRole("button").click();
        await first("dear");
        assert.equal(await head("Cost").getAttribute("aria-sort"), "descending");
        assert.equal(await head("Activity").getAttribute("aria-sort"), "none");
        await head("Session").getByRole("button").click();
        await first("old"); // "A long time ago"
        assert.equal(await head("Session").getAttribute("aria-sort"), "ascending");
        await page.reload();
        await first("old");
        await page.getByRole("button", { name: "Ascending: turn round" }).click();
        await first("recent"); // "Yes"
        await page.getByLabel("Sort", { exact: true }).selectOption("Failed tools");
        await first("dear");
      }),

  "list: filters are saved in the browser under a name, used again and forgotten": () =>
    onPage("/", several, async (page) => {
      await page.getByLabel("Status").selectOption("failed");
      await lists(page, ["dear"]);
      await page.getByRole("button", { name: "Save these filters" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("What went wrong");
      await page.keyboard.press("Enter");
      const saved = page.getByRole("button", { name: "What went wrong", exact: true });
      await saved.waitFor();
      assert.equal(await saved.getAttribute("aria-pressed"), "true");
      await page.getByRole("button", { name: "Clear" }).click();
      await lists(page, ["asking", "working", "recent", "dear", "old"]);
      await page.reload();
      await saved.click();
      await lists(page, ["dear"]);
      await page.getByRole("button", { name: "Forget What went wrong" }).click();
      await until(async () => (await saved.count()) === 0, "it is forgotten");
      await page.reload();
      await page.locator("[data-session]").first().waitFor();
      assert.equal(await saved.count(), 0);
    }),

  "list: the places of a text are below their session, and lead to the moment": () =>
    onPage("/", several, async (page) => {
      await page.getByRole("searchbox", { name: "Search" }).fill("whales");
      await lists(page, ["recent", "dear"]);
      const links = page.locator("[data-row]", { has: page.locator("[data-session=recent]") }).getByRole("link");
      await until(async () => (await links.count()) === 3, "the session and two places");
      assert.equal(await links.nth(1).locator("mark").innerText(), "whales");
      await links.nth(1).click();
      await page.waitForURL(/\/s\/recent\?at=\d+/);
    }),

  "list: on a phone the rows are cards, the targets are large and nothing is cut, in both themes without a fault of axe":
    async () => {
      for (const colorScheme of ["light", "dark"])
        await onPage(
          "/",
          several,
          async (page) => {
            await lists(page, ["asking", "working", "recent", "dear", "old"]);
            assert.deepEqual(await faults(page), []);
            await page.getByRole("button", { name: "Filters" }).click();
            const small = await page.evaluate(() => {
              const all = document.querySelectorAll("main :is(a, button, input, select), [data-row] label");
              return [...all]
                .map((el) => (el.matches("input[type=checkbox]") ? el.closest("label") : el))
                .map((el) => ({ box: el.getBoundingClientRect(), name: el.textContent || el.ariaLabel }))
                .filter(({ box }) => box.height > 0 && (box.height < 43.5 || box.width < 43.5))
                .map(({ box, name }) => `${name}: ${box.width} × ${box.height}`);
            });
            assert.deepEqual(small, []);
            assert.deepEqual(await faults(page), []);
            const wide = () =>
              page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            assert.equal(await wide(), 0, "the page is as wide as the phone");
          },
          { viewport: { width: 390, height: 844 }, hasTouch: true, bypassCSP: true, colorScheme },
        );
    },

  "list: five thousand sessions are painted with one request for the list": () =>
    onPage(
      "/inbox",
      (server) => many(server, 5000),
      async (page, server) => {
        await page.getByText("Nothing waits for you").waitFor();
        const asked = [];
        page.on("request", (r) => asked.push(new URL(r.url()).pathname));
        await page.goto(server.url);
        await rows(page).first().waitFor();
        const of = asked.filter((path) => path.startsWith("/api/v1/sessions"));
        assert.deepEqual(of, ["/api/v1/sessions"]);
        assert.ok((await rows(page).count()) < 60);
      },
    ),

  "list: five thousand sessions need fewer than sixty rows, and the oldest can be reached": () =>
    onPage(
      "/",
      (server) => many(server, 5000),
      async (page) => {
        await rows(page).first().waitFor();
        const list = page.getByRole("region", { name: "List of sessions" });
        await until(
          async () => {
            await list.evaluate((el) => el.scrollTo(0, el.scrollHeight));
            assert.ok((await rows(page).count()) < 60, "fewer than sixty rows");
            return /5,000 sessions$/.test(await page.getByRole("status").first().innerText());
          },
          "all are counted",
          undefined,
          60_000,
        );
        const oldest = (await fetchAll(page)).at(-1);
        await until(async () => {
          await list.evaluate((el) => el.scrollTo(0, el.scrollHeight));
          return (await ids(page)).includes(oldest);
        }, "the oldest is reached");
        assert.ok((await rows(page).count()) < 60);
      },
    ),
};

/** The ids in the order of the server. */
const fetchAll = (page) =>
  page.evaluate(async () => {
    const all = [];
    for (let cursor = ""; cursor !== undefined; ) {
      const p = await (await fetch(`/api/v1/sessions?limit=1000${cursor && `&cursor=${cursor}`}`)).json();
      all.push(...p.sessions.map((s) => s.id));
      cursor = p.next;
    }
    return all;
  });
