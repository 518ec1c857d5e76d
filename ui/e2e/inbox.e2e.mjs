// Questions that wait for people: the inbox, the tab, the way to a question, keys.
import assert from "node:assert/strict";
import { faults, onPage, until, visitor } from "./lab.mjs";

const command = `${"echo keep this line whole && ".repeat(40)}docker system prune -af --volumes`;
const options = [
  { id: "always", name: "Always allow", kind: "allow_always" },
  { id: "yes", name: "Allow once", kind: "allow_once" },
  { id: "no", name: "Reject", kind: "reject_once" },
];
const ask = (id, message, action) => ({
  type: "permission.requested",
  invocation: "i",
  data: { id, message, options, ...(action ? { action } : {}) },
});

/** Two sessions that wait for people, and one that does not. */
async function waiting(server) {
  for (const id of ["first", "second", "idle"]) await server.session({ id, title: `The ${id} one`, agent: "hello" });
  for (const id of ["first", "second"])
    await server.append(id, [
      { type: "RUN_STARTED", invocation: "i", data: { threadId: "main", runId: "i" } },
      ask("p", `May I go on in the ${id} one?`, { tool: "Bash", command }),
    ]);
}

const cards = (page) => page.locator("[data-ask]");
const answers = async (server, id) =>
  (await server.call("GET", `/sessions/${id}/events?type=permission.answered`)).events.map((e) => e.data.option);

export const checks = {
  "inbox: questions of all sessions are whole, counted in the tab, and answered by key; answered ones are calm": () =>
    onPage("/inbox", waiting, async (page, server) => {
      await page.getByText("2 questions wait for you.").waitFor();
      await until(
        async () => (await page.title()) === "(2) Inbox · Tapedeck",
        "the title has the count",
        () => page.title(),
      );
      assert.match(await page.locator("link[rel=icon]").getAttribute("href"), /favicon-waiting\.svg$/);
      assert.equal(await cards(page).count(), 2);
      const block = page.getByRole("group", { name: "Command" }).first();
      assert.ok((await block.innerText()).endsWith("docker system prune -af --volumes"));
      assert.ok(await block.evaluate((e) => e.scrollHeight <= e.clientHeight + 2), "the command is cut");
      await page.keyboard.press("j");
      await page.keyboard.press("1"); // the first key allows once, wherever "always" stands in the question
      await page.getByText("Answered: Allow once").waitFor();
      assert.deepEqual(await answers(server, "second"), ["yes"]);
      await page.getByText("1 question waits for you.").waitFor();
      const calm = page.locator("article", { hasText: "Answered" }).locator("[data-ask]");
      assert.ok(!(await calm.getAttribute("class")).includes("warn"), "an answered card is yellow");
      await until(async () => (await page.title()) === "(1) Inbox · Tapedeck", "the title counts down");
      await server.append("first", [{ type: "RUN_ERROR", invocation: "i", data: { message: "broken" } }]);
      await page.getByText("No question waits.").waitFor();
      await page.getByText("No answer").waitFor();
      assert.equal(await page.title(), "Inbox · Tapedeck");
    }),

  "inbox: a link leads to the question in its session, where the bar says that it waits and a key answers": () =>
    onPage("/inbox", waiting, async (page, server) => {
      await page.getByRole("link", { name: "The first one" }).click();
      await page.getByText("Waiting for your answer").waitFor();
      await page
        .getByText(/Waiting for you$/)
        .first()
        .waitFor();
      assert.match(page.url(), /\/s\/first\?ask=2/);
      await until(
        () => page.evaluate(() => document.activeElement?.getAttribute("data-ask") === "2"),
        "the card has the focus",
      );
      await page.keyboard.press("Escape");
      await page.keyboard.press("q");
      await until(() => page.evaluate(() => document.activeElement?.getAttribute("data-ask") === "2"), "q leads back");
      await page.keyboard.press("2");
      await page.getByText("Answered: Reject").waitFor();
      assert.deepEqual(await answers(server, "first"), ["no"]);
      await page.getByText("Waiting for your answer").waitFor({ state: "detached" });
    }),

  "inbox: of two tabs that answer one question, the second is told calmly": () =>
    onPage("/inbox", waiting, async (page, server) => {
      const other = await visitor(server);
      other.expected.push(/409/);
      await other.page.goto(`${server.url}/inbox`);
      await other.page.getByText("2 questions wait for you.").waitFor();
      await other.page.route("**/api/v1/inbox*", (r) => r.abort()); // it does not learn of the answer
      other.expected.push(/ERR_FAILED/);
      await page.getByRole("button", { name: "Allow once" }).first().click();
      await page.getByText("Answered: Allow once").waitFor();
      await other.page.getByRole("button", { name: "Reject" }).first().click();
      await other.page.getByText("Your answer was not used").waitFor();
      assert.deepEqual(await answers(server, "second"), ["yes"]);
      await other.end();
    }),

  "inbox: an empty inbox says so; on a phone nothing is cut and the targets are large; axe finds no fault": () =>
    onPage(
      "/inbox",
      () => {},
      async (page, server) => {
        await page.getByText("Nothing waits for you").waitFor();
        await waiting(server);
        await page.getByText("2 questions wait for you.").waitFor();
        assert.deepEqual(await faults(page), []);
        const wide = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.equal(wide, 0, "the page is wider than the phone");
        for (const name of ["Allow once", "Reject", "Always allow"]) {
          const box = await page.getByRole("button", { name }).first().boundingBox();
          assert.ok(box.height >= 44, `${name} is ${box.height} high`);
        }
      },
      { viewport: { width: 390, height: 844 }, bypassCSP: true },
    ),

  "the list says which sessions wait, and shows only those": () =>
    onPage("/?status=waiting", waiting, async (page) => {
      await page.locator("[data-session=first]").getByText("Waiting for you").waitFor();
      assert.equal(await page.locator("[data-session]").count(), 2);
    }),
};
