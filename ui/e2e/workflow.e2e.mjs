// The workflow of a session on the page: the demo's diagram, with its three tasks of agents
// and the decision of a person.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { onPage, position, until } from "./lab.mjs";

const triage = readFileSync(new URL("../../cmd/tapedeck/demo_triage.bpmn", import.meta.url), "utf8");
const args = ["--demo"];

const start = (server, more = {}) =>
  server.call("POST", "/workflows/run", { bpmn: triage, variables: { cve: "CVE-1" }, ...more });

/** Runs the diagram in the session `w` until a person has to decide. */
async function run(server) {
  await server.session({ id: "w", title: "Triage", agent: "workflow" });
  await start(server, { session: "w" });
  await decides(server);
}

const decides = (server, id = "w") =>
  until(async () => {
    const { workflow } = await server.call("GET", `/sessions/${id}/workflow`);
    return workflow?.elements.some((e) => e.element === "Decide" && e.status === "waiting");
  }, "a person has to decide");

const diagram = (page) => page.getByRole("region", { name: "Diagram" });
const bubble = (page, name) => diagram(page).getByRole("button", { name: new RegExp(`^${name},`) });
const line = (page, name) => page.getByRole("region", { name: "Tasks" }).getByRole("button", { name });
const panel = (page, name) => page.getByRole("complementary", { name: name ? `Task ${name}` : /./ });
const talk = (page, thread) => page.getByRole("region", { name: `Conversation in ${thread}` });
const state = (page, element) =>
  diagram(page)
    .locator(`[data-element-id="${element}"]`)
    .evaluate((e) => [...e.classList].find((c) => c.startsWith("state-"))?.slice("state-".length));
const isState = (page, element, want) =>
  until(
    async () => (await state(page, element)) === want,
    `${element} is ${want}`,
    () => state(page, element),
  );

const facts = "A crafted length field overflows a buffer in the parser. The score is 8.1.";
const impact = '{"severity":8,"systems":["gateway","billing"]}';
const remedy = "Version 4.2.1 has the patch; a restart is enough.";

const long = "word ".repeat(60).trim();

export const checks = {
  "workflow: live, the panel of a task types what its agent says": () =>
    onPage(
      "/s/w?view=workflow",
      (server) => server.session({ id: "w", title: "Triage", agent: "workflow" }),
      async (page, server) => {
        await page.getByText("No workflow at this moment").waitFor();
        await start(server, { session: "w", bpmn: triage.replace(facts, long) });
        await bubble(page, "Collect the facts").click();
        const seen = new Set();
        await until(async () => {
          const text = await talk(page, "thread_Collect").innerText();
          const part = /^word .*$/m.exec(text)?.[0].trim();
          if (part) seen.add(part);
          return part === long;
        }, "the whole text");
        assert.ok(seen.size > 2, `the text came at once: ${[...seen]}`);
        assert.ok(
          await talk(page, "thread_Collect")
            .getByRole("button", { name: /^Thought/ })
            .first()
            .isVisible(),
        );
        await talk(page, "thread_Collect")
          .getByRole("button", { name: /read_file.*ok/ })
          .waitFor();
        await isState(page, "Decide", "waiting");
        await bubble(page, "Collect the facts").getByText("3").waitFor();
      },
      { args },
    ),

  "workflow: replay after a reload and a restart fills the panel at once": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page, server, v) => {
        await bubble(page, "Assess the impact").click();
        await talk(page, "thread_Impact").getByText(impact, { exact: true }).waitFor();
        await page.reload();
        await talk(page, "thread_Impact").getByText(impact, { exact: true }).waitFor(); // the address keeps the task
        v.expected.push(/ERR_CONNECTION_REFUSED|Failed to load resource|ERR_/);
        await server.kill();
        await server.up();
        await page.goto(`${server.url}/s/w?view=workflow`);
        await bubble(page, "Find a remedy").click();
        await talk(page, "thread_Remedy").getByText(remedy, { exact: true }).waitFor();
        assert.equal(await talk(page, "thread_Remedy").locator(".typing, .typing-in").count(), 0);
        await isState(page, "Decide", "waiting");
      },
      { args },
    ),

  "workflow: what happened while nobody looked is there": () =>
    onPage(
      "/",
      run,
      async (page, server) => {
        await page.goto(`${server.url}/s/w?view=workflow`);
        await page.getByRole("button", { name: /Decide what to do waits for an answer/ }).waitFor();
        for (const [name, thread, text] of [
          ["Collect the facts", "thread_Collect", facts],
          ["Find a remedy", "thread_Remedy", remedy],
        ]) {
          await bubble(page, name).click();
          await talk(page, thread).getByText(text, { exact: true }).waitFor();
          await talk(page, thread)
            .getByRole("button", { name: /read_file/ })
            .waitFor();
        }
      },
      { args },
    ),

  "workflow: Clear execution empties the panels, Undo restores them, and it can run again": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page, server) => {
        await bubble(page, "Collect the facts").click();
        await talk(page, "thread_Collect").getByText(facts, { exact: true }).waitFor();
        await page.getByRole("button", { name: "Clear execution" }).click();
        await page.getByText("This run was reverted. The log still has it.").waitFor();
        await isState(page, "Collect", "reverted");
        await bubble(page, "Collect the facts, 0 messages").waitFor();
        await page.getByRole("tab", { name: /Variables/ }).click();
        await page.getByText("No variables at this moment.").waitFor();
        await page.getByRole("button", { name: "Undo" }).click();
        await isState(page, "Collect", "completed");
        await page.getByRole("button", { name: "Clear execution" }).click();
        await page.getByRole("button", { name: "Run again" }).click();
        await decides(server);
        await isState(page, "Decide", "waiting");
      },
      { args },
    ),

  "workflow: three tasks have three threads, and each its own history": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page) => {
        const texts = { Collect: facts, Impact: impact, Remedy: remedy };
        const names = { Collect: "Collect the facts", Impact: "Assess the impact", Remedy: "Find a remedy" };
        for (const [element, text] of Object.entries(texts)) {
          await bubble(page, names[element]).click();
          await panel(page, names[element]).getByText(`thread_${element}`).waitFor();
          const shown = talk(page, `thread_${element}`);
          await shown.getByText(text, { exact: true }).waitFor();
          for (const other of Object.values(texts).filter((t) => t !== text))
            assert.ok(!(await shown.innerText()).includes(other), `${element} shows the words of another task`);
        }
      },
      { args },
    ),

  "workflow: colours, counts and variables follow the playhead": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page, server) => {
        const { workflow } = await server.call("GET", "/sessions/w/workflow");
        const of = (element) => workflow.activations.find((a) => a.element === element);
        await page.goto(`${server.url}/s/w?view=workflow&at=${of("Collect").offset + 4}`);
        await isState(page, "Collect", "active");
        assert.equal(await state(page, "Impact"), undefined);
        await page.getByRole("tab", { name: /^Variables ?2$/ }).click();
        await page.keyboard.press("End");
        await isState(page, "Collect", "completed");
        await page.getByRole("group", { name: "Value of impact" }).getByText("gateway").waitFor();
        await page
          .getByRole("button", { name: /Assess the impact/ })
          .last()
          .click();
        // It plays for less than half a second, so the page itself notes what it showed.
        await diagram(page)
          .locator('[data-element-id="Impact"]')
          .evaluate((e) => {
            globalThis.shown = [];
            new MutationObserver(() => globalThis.shown.push(e.getAttribute("class"))).observe(e, { attributes: true });
          });
        await page.getByRole("button", { name: "Replay this task" }).click();
        await until(async () => (await position(page)).at === workflow.activations.at(-1).offset + 3, "it has played");
        const shown = await page.evaluate(() => globalThis.shown.join("\n"));
        assert.match(shown, /state-active[\s\S]*state-completed/);
      },
      { args },
    ),

  "workflow: a user task is answered on the page": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page, server) => {
        await page.getByRole("button", { name: /Decide what to do waits for an answer/ }).click();
        const task = panel(page, "Decide what to do");
        await task.getByLabel("What shall be done?").selectOption("wait");
        await task.getByLabel("Note (optional)").fill("not on a Friday");
        await task.getByRole("button", { name: "Submit" }).click();
        await isState(page, "Settled", "completed");
        await task.getByText("Wait for the next window").waitFor();
        const { workflow } = await server.call("GET", "/sessions/w/workflow");
        assert.equal(workflow.status, "complete");
        assert.equal(workflow.variables.decision, "wait");
        assert.equal(workflow.variables.note, "not on a Friday");
        await page.getByText("It reached its end.").waitFor();
      },
      { args },
    ),

  "workflow: a rewind before a task and a second run leave the first run in the log": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page, server) => {
        await line(page, /Assess the impact/).click();
        await panel(page, "Assess the impact").getByRole("button", { name: "Rewind before" }).click();
        const dialog = page.getByRole("dialog", { name: "Rewind before Assess the impact?" });
        await dialog.getByText(/Also reverted: Find a remedy, Decide what to do/).waitFor();
        await dialog.getByRole("button", { name: "Rewind and run again" }).click();
        await dialog.waitFor({ state: "detached" });
        await decides(server);
        await isState(page, "Impact", "completed");
        const runs = panel(page, "Assess the impact").getByLabel("Run", { exact: true });
        assert.deepEqual(await runs.locator("option").allInnerTexts(), ["1 of 2, reverted", "2 of 2, completed"]);
        await runs.selectOption({ index: 0 });
        await page.getByRole("button", { name: "Go to the moment before" }).click();
        await talk(page, "thread_Impact").getByText(impact, { exact: true }).waitFor();
        const { events } = await server.call("GET", "/sessions/w/events?type=RUN_STARTED&thread=thread_Impact");
        assert.equal(new Set(events.map((e) => e.invocation)).size, 2);
      },
      { args },
    ),
};
