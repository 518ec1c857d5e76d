// The list of sessions.
import assert from "node:assert/strict";
import { importExport, onPage, timed, turn, until } from "./lab.mjs";

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
