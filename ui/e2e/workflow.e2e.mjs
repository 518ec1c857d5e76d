// The workflow of a session on the page: the demo's diagram, with its three tasks of agents
// and the decision of a person.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { faults, onPage, until } from "./lab.mjs";

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

/** Clears a workflow that runs, which asks first. */
async function clears(page) {
  await page.getByRole("button", { name: "Clear execution" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel and clear" }).click();
}

const facts = "A crafted length field overflows a buffer in the parser. The score is 8.1.";
const impact = '{"severity":8,"systems":["gateway","billing"]}';
const remedy = "Version 4.2.1 has the patch; a restart is enough.";

const attack = "<img src=x onerror=pwned=1><script>pwned=2</script>";
const escaped = attack.replaceAll("<", "&lt;");
const hostile = `<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:bpmndi="http://www.omg.org/spec/BPMN/20100524/DI" xmlns:dc="http://www.omg.org/spec/DD/20100524/DC" id="D" targetNamespace="x">
  <bpmn:process id="P" name="${escaped}" isExecutable="true">
    <bpmn:startEvent id="S" name="${escaped}"/>
    <bpmn:subProcess id="Sub" name="${escaped}">
      <bpmn:startEvent id="S2"/>
      <bpmn:userTask id="T" name="${escaped}"><bpmn:documentation>${escaped}</bpmn:documentation></bpmn:userTask>
      <bpmn:sequenceFlow id="F2" name="${escaped}" sourceRef="S2" targetRef="T"/>
    </bpmn:subProcess>
    <bpmn:sequenceFlow id="F" name="${escaped}" sourceRef="S" targetRef="Sub"/>
  </bpmn:process>
  <bpmndi:BPMNDiagram id="D1"><bpmndi:BPMNPlane id="P1" bpmnElement="P">
    <bpmndi:BPMNShape id="S_d" bpmnElement="S"><dc:Bounds x="10" y="10" width="36" height="36"/></bpmndi:BPMNShape>
    <bpmndi:BPMNShape id="Sub_d" bpmnElement="Sub" isExpanded="false"><dc:Bounds x="100" y="0" width="100" height="80"/></bpmndi:BPMNShape>
  </bpmndi:BPMNPlane></bpmndi:BPMNDiagram>
  <bpmndi:BPMNDiagram id="D2"><bpmndi:BPMNPlane id="P2" bpmnElement="Sub">
    <bpmndi:BPMNShape id="S2_d" bpmnElement="S2"><dc:Bounds x="10" y="10" width="36" height="36"/></bpmndi:BPMNShape>
    <bpmndi:BPMNShape id="T_d" bpmnElement="T"><dc:Bounds x="100" y="0" width="100" height="80"/></bpmndi:BPMNShape>
  </bpmndi:BPMNPlane></bpmndi:BPMNDiagram>
</bpmn:definitions>`;

/** Chooses a file on the start page. */
const choose = (page, name, text) =>
  page.locator("input[type=file]").setInputFiles({ name, mimeType: "application/xml", buffer: Buffer.from(text) });

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
        await page.getByRole("button", { name: "Keep it" }).click();
        await isState(page, "Decide", "waiting");
        await clears(page);
        await page.getByText("This run was reverted. The log still has it.").waitFor();
        await isState(page, "Collect", "reverted");
        await bubble(page, "Collect the facts, 0 messages").waitFor();
        await page.getByRole("tab", { name: /Variables/ }).click();
        await page.getByText("No variables at this moment.").waitFor();
        await page.getByRole("button", { name: "Undo" }).click();
        await isState(page, "Collect", "completed");
        await page.getByRole("button", { name: "Resume" }).waitFor();
        await page.getByRole("button", { name: "Clear execution" }).click(); // nothing runs: no question
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
        // The page itself notes what it showed.
        await diagram(page)
          .locator('[data-element-id="Impact"]')
          .evaluate((e) => {
            globalThis.shown = [];
            new MutationObserver(() => globalThis.shown.push(e.getAttribute("class"))).observe(e, { attributes: true });
          });
        await page.getByRole("button", { name: "Replay this task" }).click();
        await page.getByText(/^Plays one part at 0\.\d+×, then stops$/).waitFor();
        const shown = () => page.evaluate(() => globalThis.shown.join("\n"));
        await until(async () => /state-active[\s\S]*state-completed/.test(await shown()), "it plays", shown);
        await page.getByRole("button", { name: "Play", exact: true }).waitFor();
        await page.getByText(`event ${of("Impact").end_offset + 1} of `, { exact: false }).waitFor(); // its last event, no more
        await page.getByText("Playback (the agent is not called)").waitFor();
        await page.getByRole("button", { name: "Go to end" }).click();
        await page.getByText("Playback (the agent is not called)").waitFor({ state: "detached" });
        assert.ok(await page.getByRole("button", { name: "Rewind before" }).isEnabled());
      },
      { args },
    ),

  "workflow: a question in the past leads to the live one": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page, server) => {
        await isState(page, "Decide", "waiting");
        const { head } = await server.call("GET", "/sessions/w");
        await page.goto(`${server.url}/s/w?view=workflow&at=${head}&task=Decide`);
        const task = panel(page, "Decide what to do");
        await task.getByRole("button", { name: "Go live to answer" }).waitFor();
        assert.ok(await task.getByRole("button", { name: "Submit" }).isDisabled());
        await task.getByRole("button", { name: "Go live to answer" }).click();
        await task.getByRole("button", { name: "Go live to answer" }).waitFor({ state: "detached" });
        await task.getByLabel("What shall be done?").selectOption("wait");
        await task.getByRole("button", { name: "Submit" }).click();
        await isState(page, "Settled", "completed");
      },
      { args },
    ),

  "workflow: after the end, a task that was not reached has no bubble": () =>
    onPage(
      "/s/w?view=workflow",
      async (server) => {
        await server.session({ id: "w", title: "Triage", agent: "workflow" });
        await start(server, { session: "w", bpmn: triage.replace(facts, long.repeat(40)) });
      },
      async (page) => {
        await isState(page, "Collect", "active");
        await bubble(page, "Assess the impact").waitFor();
        await page.getByRole("button", { name: "Cancel" }).click();
        await isState(page, "Collect", "cancelled");
        await bubble(page, "Assess the impact").waitFor({ state: "detached" });
        await bubble(page, "Collect the facts").waitFor();
      },
      { args },
    ),

  "workflow: before a rewind the dialog names the tasks that begin again": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page) => {
        await line(page, /Find a remedy/).click();
        await panel(page, "Find a remedy").getByRole("button", { name: "Rewind before" }).click();
        const dialog = page.getByRole("dialog", { name: "Rewind before Find a remedy?" });
        await dialog
          .getByText(/Not finished at that moment: Assess the impact\. .*its agent is called again/)
          .waitFor();
        await dialog.getByRole("button", { name: "Cancel" }).click();
        await line(page, /Assess the impact/).click();
        await panel(page, "Assess the impact").getByRole("button", { name: "Rewind before" }).click();
        await page.getByText(/Also reverted: Find a remedy/).waitFor();
        assert.equal(await page.getByText(/Not finished at that moment/).count(), 0);
      },
      { args },
    ),

  "workflow: a user task is answered on the page": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page, server) => {
        await page.getByRole("button", { name: /Decide what to do waits for an answer/ }).waitFor();
        await diagram(page).getByRole("button", { name: "Decide what to do, question, asks for an answer" }).click();
        const task = panel(page, "Decide what to do");
        await task.getByLabel("What shall be done?").selectOption("wait");
        await task.getByLabel("Note (optional)").fill("not on a Friday");
        await task.getByRole("button", { name: "Submit" }).click();
        await isState(page, "Settled", "completed");
        await task.getByText("Wait for the next window").waitFor();
        await page.getByRole("button", { name: "Close the panel" }).click();
        await diagram(page).getByRole("button", { name: "Decide what to do, question, done" }).click();
        await task.getByText(/Answered: Submit$/).waitFor();
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

  "workflow: the list has every element, and is used with the keyboard only": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page) => {
        await line(page, /Collect the facts/).waitFor();
        await page.getByRole("button", { name: "Clear execution" }).focus();
        const lines = await page.getByRole("region", { name: "Tasks" }).getByRole("button").allInnerTexts();
        assert.equal(lines.length, 9, lines.join("\n"));
        await until(async () => {
          await page.keyboard.press("Tab");
          return line(page, /Reported/).evaluate((e) => e === document.activeElement);
        }, "Tab reaches the first line");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        await panel(page, "Assess the impact").waitFor();
        assert.equal(await line(page, /Assess the impact/).getAttribute("aria-pressed"), "true");
        await page.keyboard.press("End");
        await page.keyboard.press("ArrowUp");
        assert.match(await page.evaluate(() => document.activeElement.innerText), /Settled/);
        const name = await line(page, /Assess the impact/).innerText();
        assert.match(name, /Done/);
        assert.match(await line(page, /Assess the impact/).textContent(), /2 messages, 1 tool call/);
        await line(page, /Decide what to do/).focus();
        await page.keyboard.press("Enter");
        const choice = panel(page, "Decide what to do").getByLabel("What shall be done?");
        await until(() => choice.evaluate((e) => e === document.activeElement), "Enter goes to the form");
      },
      { args },
    ),

  "workflow: a phone shows the diagram, the list below it, and a task over both": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page) => {
        await line(page, /Decide what to do/).waitFor();
        const top = async (l) => (await l.boundingBox()).y;
        await isState(page, "Decide", "waiting");
        const drawn = await diagram(page).boundingBox();
        assert.ok(drawn.height >= 150 && drawn.width >= 380, JSON.stringify(drawn));
        assert.ok(
          (await top(line(page, /Decide what to do/))) > drawn.y + drawn.height,
          "the list is below the diagram",
        );
        await line(page, /Decide what to do/).click();
        const box = await panel(page, "Decide what to do").boundingBox();
        assert.ok(box.height > 500, `the sheet has ${box.height} pixels`);
        assert.ok(box.x >= 0 && box.width >= 380 && box.x + box.width <= 391, JSON.stringify(box));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
        await panel(page, "Decide what to do").getByLabel("What shall be done?").selectOption("accept");
        await panel(page, "Decide what to do").getByRole("button", { name: "Submit" }).click();
        await page.getByText("Accept the risk").last().waitFor();
        await page.getByRole("button", { name: "Close the panel" }).click();
        await line(page, /Settled.*Done|Done.*Settled/).waitFor();
        await page.getByRole("button", { name: "Variables" }).click();
        await page.getByRole("group", { name: "Value of decision" }).getByText("accept").waitFor();
      },
      { args, viewport: { width: 390, height: 844 } },
    ),

  "workflow: on a phone the diagram opens over the whole page, at what is active, and is moved with fingers": () =>
    onPage(
      "/s/w?view=workflow",
      run,
      async (page) => {
        await isState(page, "Decide", "waiting");
        const node = () => diagram(page).locator('[data-element-id="Decide"] .djs-hit').first().boundingBox();
        const small = await node();
        await page.getByRole("button", { name: "Show the diagram on the full screen" }).click();
        const leave = page.getByRole("button", { name: "Leave the full screen" });
        await leave.waitFor();
        const all = await diagram(page).boundingBox();
        assert.deepEqual([all.x, all.y, all.width, all.height], [0, 0, 390, 844]);
        const large = await node();
        assert.ok(large.width > 1.5 * small.width, `${large.width} pixels instead of ${small.width}`);
        assert.ok(large.x >= 0 && large.x + large.width <= 390, `the active element is in view: ${large.x}`);
        const finger = (type, pointerId, clientX, clientY) =>
          diagram(page)
            .locator(".djs-container")
            .dispatchEvent(type, { pointerType: "touch", pointerId, clientX, clientY, bubbles: true });
        await finger("pointerdown", 1, 200, 300);
        await finger("pointermove", 1, 160, 300);
        await until(async () => Math.abs((await node()).x - large.x + 40) < 2, "one finger drags");
        await finger("pointerdown", 2, 260, 300);
        await finger("pointermove", 2, 310, 300);
        await until(async () => (await node()).width > 1.3 * large.width, "two fingers zoom");
        await page.keyboard.press("Escape");
        await leave.waitFor({ state: "detached" });
        assert.ok((await diagram(page).boundingBox()).height < 500);
        await page.getByRole("button", { name: "Show the diagram on the full screen" }).click();
        await diagram(page).locator('[data-element-id="Decide"] .djs-hit').first().click();
        await leave.waitFor({ state: "detached" });
        await panel(page, "Decide what to do").waitFor();
      },
      { args, viewport: { width: 390, height: 844 }, hasTouch: true },
    ),

  "workflow: axe finds no fault on its pages, light and dark": async () => {
    for (const colorScheme of ["light", "dark"])
      await onPage(
        "/s/w?view=workflow",
        run,
        async (page, server, v) => {
          v.expected.push(/status of 400/, /failed to import <bpmn:SequenceFlow/);
          await isState(page, "Decide", "waiting");
          assert.deepEqual(await faults(page), []);
          await line(page, /Decide what to do/).click();
          await panel(page, "Decide what to do").getByLabel("What shall be done?").waitFor();
          assert.deepEqual(await faults(page), []);
          await bubble(page, "Collect the facts").click();
          await talk(page, "thread_Collect").getByText(facts, { exact: true }).waitFor();
          assert.deepEqual(await faults(page), []);
          await page.goto(`${server.url}/workflows`);
          await choose(page, "broken.bpmn", triage.replace('targetRef="Split"', 'targetRef="Nowhere"'));
          await page.getByRole("alert", { name: "This diagram cannot run" }).waitFor();
          assert.deepEqual(await faults(page), []);
          await choose(page, "triage.bpmn", triage);
          await page.getByLabel("Which vulnerability?").waitFor();
          assert.deepEqual(await faults(page), []);
        },
        { args, colorScheme, bypassCSP: true },
      );
  },

  "workflows: a file is checked, drawn, started with its variables and agents, and stored": () =>
    onPage(
      "/workflows",
      () => undefined,
      async (page, server) => {
        await page.getByText("Choose a workflow").waitFor();
        const open = triage.replace('name="demo_triage" output="facts"', 'output="facts"');
        await choose(
          page,
          "my triage.bpmn",
          open.replace("<tapedeck:agent output", '<tapedeck:agent name="nobody" output'),
        );
        await page.getByRole("heading", { name: "Triage of a vulnerability" }).waitFor();
        await diagram(page).waitFor();
        const needs = page.getByRole("region", { name: "A run still needs" });
        await needs.getByText(/nobody/).waitFor();
        assert.ok(await page.getByRole("button", { name: "Start" }).isDisabled());
        await page.getByLabel("Collect the facts").selectOption("demo_triage");
        await needs.waitFor({ state: "detached" });
        await page.getByLabel("Which vulnerability?").fill("CVE-42");
        await page.getByLabel("Keep it on the server as").fill("triage-2");
        await page.getByRole("button", { name: "Store" }).click();
        await page.getByRole("navigation", { name: "Stored workflows" }).getByText("triage-2").waitFor();
        await page.getByText("Stored as triage-2", { exact: false }).waitFor();
        await page.getByLabel("Collect the facts").selectOption("demo_triage");
        await page.getByLabel("Which vulnerability?").fill("CVE-42");
        await page.getByText("More: title, other variables").click();
        await page.getByLabel("Other variables").fill('{"urgent": true}');
        await page.getByRole("button", { name: "Start" }).click();
        await page.waitForURL(/\/s\/.*view=workflow/);
        await bubble(page, "Collect the facts").waitFor();
        const id = new URL(page.url()).pathname.split("/").at(-1);
        const { workflow } = await server.call("GET", `/sessions/${id}/workflow`);
        assert.equal(workflow.variables.cve, "CVE-42");
        assert.equal(workflow.variables.urgent, true);
        assert.deepEqual(workflow.agents, { Collect: "demo_triage" });
        await page.goto(server.url);
        const row = page.locator(`[data-session="${id}"]`);
        await row.getByRole("link").click();
        await page.waitForURL(/view=workflow/);
      },
      { args },
    ),

  "workflows: a broken file says what is wrong, with element and line, and starts nothing": () =>
    onPage(
      "/workflows",
      () => undefined,
      async (page, server, v) => {
        v.expected.push(/status of 400/, /failed to import <bpmn:SequenceFlow/);
        await choose(page, "broken.bpmn", triage.replace('targetRef="Split"', 'targetRef="Nowhere"'));
        const wrong = page.getByRole("alert", { name: "This diagram cannot run" });
        const at = triage.split("\n").findIndex((l) => l.includes('targetRef="Split"')) + 1;
        await wrong.getByText(`Line ${at}, Flow_split:`).waitFor();
        await wrong.getByText(/targetRef of the flow is Nowhere/).waitFor();
        await wrong.getByText('<bpmn:sequenceFlow id="Flow_split"').waitFor();
        assert.equal(await page.getByRole("button", { name: "Start" }).count(), 0);
        await choose(page, "no.bpmn", "hello");
        await wrong.getByText(/Line 1|The file/).waitFor();
        await choose(page, "bomb.bpmn", '<!DOCTYPE x [<!ENTITY a "b">]><definitions/>');
        await wrong
          .getByText(/DOCTYPE/)
          .first()
          .waitFor();
        await choose(page, "big one.bpmn", " ".repeat(9 * 1024 * 1024));
        await page.getByText("“big one.bpmn” has 9 MiB; a diagram has at most 8", { exact: true }).waitFor();
        const { sessions } = await server.call("GET", "/sessions");
        assert.equal(sessions.filter((s) => s.agent === "workflow" && s.id !== "demo_triage").length, 0);
      },
      { args },
    ),

  "workflows: versions of a stored diagram are chosen, and all are deleted after a question": () =>
    onPage(
      "/workflows",
      async (server) => {
        await server.call("PUT", "/workflows/v", { bpmn: triage });
        await server.call("PUT", "/workflows/v", {
          bpmn: triage.replace("Triage of a vulnerability", "Triage, second"),
        });
      },
      async (page) => {
        const stored = page.getByRole("navigation", { name: "Stored workflows" });
        await stored.getByText("Triage, second").click();
        await page.getByRole("heading", { name: "Triage, second" }).waitFor();
        await page.getByLabel("Version").selectOption({ index: 1 });
        await page.getByRole("heading", { name: "Triage of a vulnerability" }).waitFor();
        await page.getByRole("button", { name: "Delete" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
        await stored.getByText("Triage, second").waitFor({ state: "detached" });
      },
      { args },
    ),

  "workflow: hostile names, documentation and variables run nothing": () =>
    onPage(
      "/s/w?view=workflow",
      (server) => server.session({ id: "w", title: "Hostile", agent: "workflow" }),
      async (page, server) => {
        await page.getByText("No workflow at this moment").waitFor();
        await start(server, { session: "w", bpmn: hostile, variables: { evil: attack, "<b>bold</b>": attack } });
        await isState(page, "Sub", "active");
        await line(page, /img.*Waiting|Waiting.*img/).click(); // its plane has a way back, with the names
        await isState(page, "T", "waiting");
        const task = page.getByRole("complementary");
        await until(async () => (await task.getByText(attack, { exact: true }).count()) > 1, "name and documentation");
        await diagram(page).locator(".bjs-breadcrumbs").getByText(attack).first().waitFor();
        await page.getByRole("tab", { name: /Variables/ }).click();
        await page.getByRole("group", { name: "Value of evil" }).getByText(attack).waitFor();
        assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
        assert.equal(await page.locator("main img, main script, main iframe").count(), 0);
      },
      { args },
    ),

  "workflow: a diagram without a drawing says so and leaves the list": () =>
    onPage(
      "/s/w?view=workflow",
      async (server) => {
        await server.session({ id: "w", title: "Plain", agent: "workflow" });
        await start(server, {
          session: "w",
          bpmn: triage.replace(/<bpmndi:BPMNDiagram[\s\S]*<\/bpmndi:BPMNDiagram>/, ""),
        });
        await decides(server);
      },
      async (page) => {
        await page.getByText("This diagram cannot be drawn: the file does not say where its elements are.").waitFor();
        await line(page, /Collect the facts/).click();
        await talk(page, "thread_Collect").getByText(facts, { exact: true }).waitFor();
        await line(page, /Decide what to do/).click();
        await panel(page, "Decide what to do").getByRole("button", { name: "Submit" }).click();
        await page.getByText("It reached its end.").waitFor();
      },
      { args },
    ),
};
