// Retakes the screenshots in docs/screen: node e2e/shots.mjs [part of a name]. Look at each.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { closeBrowser, openBrowser, recorded, Server, turn, until, visitor } from "./lab.mjs";

const folder = new URL("../../docs/screen/", import.meta.url).pathname;
mkdirSync(folder, { recursive: true });

const server = await Server.start("--demo");
await openBrowser();
await server.call("POST", "/sessions/run", {
  task: "Find out why the build is red and fix it",
  agent: "coder",
  title: "The build is red",
});
const { sessions } = await server.call("GET", "/sessions?q=red");
const id = sessions[0].id;
const done = () =>
  until(
    async () => (await server.call("GET", `/sessions/${id}`)).status === "complete",
    "it is done",
    undefined,
    60_000,
  );
await done();
for (const task of ["Now write the release notes", "And tell the customers"]) {
  await server.call("POST", `/sessions/${id}/task`, { task, agent: "hello" });
  await done();
}
const { tasks } = await server.call("GET", `/sessions/${id}/tasks`);
await server.call("POST", `/sessions/${id}/fork`, {
  at: tasks[1].first,
  id: "another-way",
  title: "The build is red, another way",
});
await server.append("another-way", turn("j1", "Explain it first", "The total is a **float**: 3 × 0.1 is not 0.3."));
await server.call("POST", `/sessions/${id}/rewind`, { before_invocation_id: tasks[2].invocation });

const { markers } = await server.call("GET", `/sessions/${id}/replay-index`);
const failing = markers.find((m) => m.kind === "error").offset; // when the first test run has failed
/** Waits for what is open by itself: the edit, and the tool that failed. */
const open = async (page) => {
  for (const name of [/^Edit/, /^Bash.*failed/])
    await page.getByRole("button", { name, expanded: true }).first().waitFor();
};
const at = (n) => `2026-01-05T10:0${n}:00.000Z`;
const line = (type, n, message) => JSON.stringify({ type, uuid: `u${n}`, sessionId: "s-1", timestamp: at(n), message });
const talk = Buffer.from(
  [
    JSON.stringify({ type: "summary", summary: "Why the total of an invoice is off by a cent" }),
    line("user", 0, { role: "user", content: "The total is wrong, why?" }),
    JSON.stringify({ type: "progress", uuid: "p1" }),
    line("assistant", 1, { id: "m1", role: "assistant", content: [{ type: "text", text: "Prices are floats." }] }),
  ].join("\n"),
);
/** Lets people join. They leave again after a while, so each round of pictures needs it. */
async function peopleJoin() {
  for (const [user, cursor] of [
    ["Ada", { name: "Ada Lovelace", state: "typing" }],
    ["Bob", { name: "Bob", at: 120 }],
    ["Grace", { name: "Grace Hopper" }],
  ])
    await server.call("POST", `/sessions/${id}/presence`, { action: "join", user, cursor });
}
await server.session({ id: "panes", title: "A review while it is built", agent: "coder" });
await server.append("panes", [
  ...turn("p1", "Give the hub a queue for each session", "It has one: a slow session holds up *no other* now."),
  ...turn("p2", "Review it", "The queue has **no bound**: a reader that never reads fills the memory.", "review"),
  ...turn("p3", "Write the docs for it", ["- sessions no longer wait for each other\n"], "docs"),
  ...turn("p4", "Give it a bound, then", "It holds 256 events. A slower reader reads from the log."),
  ...turn("p5", "And now?", ["The bound is right. What is dropped is in the log, "])
    .slice(0, 4)
    .map((e) => ({ ...e, thread: "review" })),
]);
const shots = [
  ["sessions", "/"],
  ["sessions-phone", "/", undefined, { viewport: { width: 390, height: 780 }, hasTouch: true }],
  ["live", "/s/demo_live"],
  ["playback", `/s/${id}?at=150&panel=plan`, open],
  ["rewound", `/s/${id}?panel=summary`],
  ["people", `/s/${id}?panel=people`],
  ["threads", "/s/panes?panel=threads&pane=review"],
  ["rewind", `/s/${id}`, (page) => page.getByRole("button", { name: "Rewind to here" }).last().click()],
  ["events", `/s/${id}?view=events&at=60`, (page) => page.getByRole("button", { name: /^60 / }).click()],
  ["terminal", `/s/${id}?view=terminal&at=${failing}`],
  [
    "import",
    "/import",
    (page) =>
      page.getByLabel("Choose a file").setInputFiles({ name: "session.jsonl", mimeType: "text/plain", buffer: talk }),
  ],
  ["keys", `/s/${id}`, (page) => page.keyboard.press("?")],
];
const recording = join(tmpdir(), `tapedeck-recording-${process.pid}.html`);
const exported = await fetch(`${server.url}/api/v1/sessions/${id}/export`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ format: "html", redact: { presets: ["secrets"] } }),
});
writeFileSync(recording, Buffer.from(await exported.arrayBuffer()));

for (const colorScheme of ["light", "dark"]) {
  for (const [name, path, act, screen] of shots) {
    if (!name.includes(process.argv[2] ?? "")) continue;
    await peopleJoin();
    const v = await visitor(server, { colorScheme, viewport: { width: 1280, height: 800 }, ...screen });
    await v.page.goto(server.url + path);
    await v.page.waitForFunction(() => !document.body.innerText.includes("```")); // Markdown is loaded later
    await v.page.waitForTimeout(1500);
    await act?.(v.page);
    await v.page.waitForTimeout(400);
    await v.page.screenshot({ path: `${folder}${name}-${colorScheme}.png` });
    await v.end();
  }
}
for (const colorScheme of ["light", "dark"]) {
  if (!"recording".includes(process.argv[2] ?? "")) continue;
  const viewport = { width: 1280, height: 800 };
  const v = await visitor({ url: "null" }, { colorScheme, viewport, offline: true });
  await v.page.goto(`${pathToFileURL(recording)}#at=150`);
  await open(v.page);
  await v.page.waitForTimeout(400);
  await v.page.screenshot({ path: `${folder}recording-${colorScheme}.png` });
  await v.end();
}
rmSync(recording);
if (["branches", "compare", "switcher"].some((name) => name.includes(process.argv[2] ?? ""))) await shootBranches();
if ("time".includes(process.argv[2] ?? "")) await shootTime();
if (["workflow", "workflows", "inbox"].some((name) => name.includes(process.argv[2] ?? ""))) await shootWorkflow();
await closeBrowser();
await server.stop();

/** The time view with the sessions of a day, on a separate server. */
async function shootTime() {
  const hour = 3_600_000;
  const other = await Server.start();
  const tasks = ["Round the total", "Renew the index", "Fix the login", "Tidy the docs", "Speed up the import"];
  const lines = Array.from({ length: 40 }, (_, n) => {
    const took = (0.2 + Math.abs(Math.sin(n * 3)) * 1.6) * hour;
    const agent = ["coder", "reviewer", "release"][n % 3];
    const began = (22 - n * 0.5 + Math.sin(n * 7) * 0.5) * hour;
    return recorded(`task-${n}`, agent, began, took, n % 6 === 2).map((line) =>
      line.replaceAll(`Task task-${n}`, tasks[n % tasks.length]),
    );
  });
  await other.call("POST", "/import?format=ndjson", `${lines.flat().join("\n")}\n`, "application/x-ndjson");
  await other.call("POST", "/sessions/task-39/fork", { id: "another", title: "Another way" });
  for (const colorScheme of ["light", "dark"]) {
    const t = await visitor(other, { colorScheme, viewport: { width: 1280, height: 640 } });
    await t.page.goto(`${other.url}/?view=time`);
    await t.page.waitForTimeout(1500);
    await t.page.keyboard.press("k");
    await t.page.waitForTimeout(400);
    await t.page.screenshot({ path: `${folder}time-${colorScheme}.png` });
    await t.end();
  }
  await other.stop();
}

/** The demo's workflow while a person has to decide, on a separate server. */
async function shootWorkflow() {
  const other = await Server.start("--demo");
  const bpmn = readFileSync(new URL("../../cmd/tapedeck/demo_triage.bpmn", import.meta.url), "utf8");
  await other.call("PUT", "/workflows/triage", bpmn, "application/xml");
  await other.session({ id: "w", title: "Triage of a vulnerability", agent: "workflow" });
  await other.call("POST", "/workflows/run", { bpmn, session: "w", variables: { cve: "CVE-2026-4711" } });
  await until(async () => (await other.call("GET", "/sessions/w")).status === "waiting", "a person has to decide");
  const all = [
    [
      "workflow",
      "/s/w?view=workflow",
      (page) =>
        page
          .getByRole("button", { name: /^Collect/ })
          .first()
          .click(),
    ],
    [
      "workflows",
      "/workflows",
      (page) =>
        page
          .getByRole("link", { name: /triage/ })
          .first()
          .click(),
    ],
    ["inbox", "/inbox"],
  ];
  for (const colorScheme of ["light", "dark"]) {
    for (const [name, path, act] of all) {
      const t = await visitor(other, { colorScheme, viewport: { width: 1280, height: 800 } });
      await t.page.goto(other.url + path);
      await t.page.waitForTimeout(2000);
      await act?.(t.page);
      await t.page.waitForTimeout(800);
      await t.page.screenshot({ path: `${folder}${name}-${colorScheme}.png` });
      await t.end();
    }
  }
  await other.stop();
}

/** Related sessions, on a separate server. */
async function shootBranches() {
  const other = await Server.start();
  const say = (to, key, ask, answer, tool) => other.append(to, withTool(turn(key, ask, answer), key, tool));
  await other.session({ id: "trunk", title: "Stop the races", agent: "coder" });
  await say("trunk", "1", "Why do two tests fail now and then?", "Both write the same map without a lock.");
  await say("trunk", "2", "Show me where", "It is in `hub.go`, in the loop that wakes the readers.");
  await say("trunk", "3", "Fix it", "I use a global lock for all sessions.", [
    "go test -race ./...",
    "FAIL: 1 of 31 tests",
  ]);
  await say("trunk", "4", "Is it fast enough?", "No: all sessions wait for each other.");
  const { tasks } = await other.call("GET", "/sessions/trunk/tasks");
  await other.call("POST", "/sessions/trunk/fork", { at: tasks[2].first, id: "queue", title: "A queue for each" });
  await say("queue", "q3", "Fix it", "I use a queue per session.", ["go test -race ./...", "ok: 31 tests"]);
  await say("queue", "q4", "Is it fast enough?", "Yes: they do not wait for each other.");
  await say("queue", "q5", "Write the release notes", "Done.");
  await other.call("POST", "/sessions/queue/fork", { id: "bounded", title: "A queue with a bound" });
  await say("bounded", "b6", "Stop slow readers from filling the memory", "The queue has a bound now.");
  await other.call("POST", "/sessions/trunk/rewind", { before_invocation_id: "4" });
  await say("trunk", "5", "Measure it first", "With 64 sessions it is 9 times slower.");
  const all = [
    ["branches", "/s/trunk?view=branches", (page) => page.getByRole("tree").focus()],
    ["compare", "/compare?a=trunk&b=queue"],
    ["switcher", "/s/trunk", (page) => page.getByRole("button", { name: /^Branch 1 of 2/ }).click()],
  ];
  for (const colorScheme of ["light", "dark"]) {
    for (const [name, path, act] of all) {
      const t = await visitor(other, { colorScheme, viewport: { width: 1280, height: 800 } });
      await t.page.goto(other.url + path);
      await t.page.waitForTimeout(1500);
      await act?.(t.page);
      await t.page.waitForTimeout(400);
      await t.page.screenshot({ path: `${folder}${name}-${colorScheme}.png` });
      await t.end();
    }
  }
  await other.stop();
}

/** Adds the run of a command to a turn, if one is given. */
function withTool(events, invocation, tool) {
  if (!tool) return events;
  const [command, content] = tool;
  const call = { toolCallId: `c_${invocation}` };
  const event = (type, data) => ({ type, invocation, data });
  return [
    ...events.slice(0, -1),
    event("TOOL_CALL_START", { ...call, toolCallName: "Bash" }),
    event("TOOL_CALL_ARGS", { ...call, delta: JSON.stringify({ command }) }),
    event("TOOL_CALL_END", call),
    event("TOOL_CALL_RESULT", {
      ...call,
      messageId: `t_${invocation}`,
      content,
      ...(content.startsWith("FAIL") ? { error: "exit 1" } : {}),
    }),
    ...events.slice(-1),
  ];
}
