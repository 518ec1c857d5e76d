import assert from "node:assert/strict";
import { conversation, faults, isAt, onPage, Server, turn, until, visitor } from "./lab.mjs";

const graph = (page) => page.getByRole("tree", { name: /^Branches: arrow keys move/ });

/**
 * Related sessions: one with four turns, of which the fourth was rewound and sent
 * again, and a fork after the second turn. A turn has six events.
 */
async function branched(check, path = "/s/s", options = {}) {
  const fill = async (server) => {
    await server.session({ id: "s", title: "The trunk", agent: "hello" });
    for (let i = 1; i <= 4; i++) await server.append("s", turn(`i${i}`, `question ${i}`, `answer ${i}`));
    await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i4" });
    await server.append("s", turn("i5", "question 4, better", "a better answer"));
    await server.call("POST", "/sessions/s/fork", { at: 13, id: "f", title: "The other way" });
    await server.append("f", turn("j1", "question of the fork", "answer of the fork"));
  };
  await onPage(path, fill, check, options);
}

/** A turn with a tool call of a given duration, which sets the state. */
function working(invocation, ask, answer, { output, state, tookMs }) {
  const began = Date.parse("2026-01-05T12:00:00Z");
  const event = (type, data, ms = 0) => ({
    type,
    invocation,
    timestamp: new Date(began + ms).toISOString(),
    data,
  });
  const [message, started, ...said] = turn(invocation, ask, answer);
  const ended = said.pop();
  return [
    message,
    started,
    ...said,
    event("TOOL_CALL_START", { toolCallId: `c_${invocation}`, toolCallName: "Bash" }),
    event("TOOL_CALL_ARGS", { toolCallId: `c_${invocation}`, delta: '{"command":"go test"}' }),
    event("TOOL_CALL_END", { toolCallId: `c_${invocation}` }),
    event("TOOL_CALL_RESULT", { messageId: `t_${invocation}`, toolCallId: `c_${invocation}`, content: output }, tookMs),
    event("STATE_SNAPSHOT", { snapshot: state }),
    ended,
  ];
}

/** Two sessions with the same first turn that then diverge. */
async function diverged(check, path, options = {}) {
  const fill = async (server) => {
    await server.session({ id: "a", title: "One way" });
    await server.append("a", turn("i1", "the same question", "the same answer"));
    await server.call("POST", "/sessions/a/fork", { at: 7, id: "b", title: "Another way" });
    await server.append(
      "a",
      working("a2", "stop the races", "Use a global lock for it.", {
        output: "1 test failed",
        state: { lock: 1, n: 1 },
      }),
    );
    await server.append("a", turn("a3", "only here", "yes"));
    await server.append(
      "b",
      working("b2", "stop the races", "Use a queue for it.", { output: "all tests pass", state: { queue: 1, n: 2 } }),
    );
  };
  await onPage(path, fill, check, options);
}

/** A session, and a fork of it that leaves in the middle of the second turn, after a long output. */
async function forkedInMidTurn(check, path, options = {}) {
  const fill = async (server) => {
    await server.session({ id: "s", title: "The trunk", agent: "coder" });
    await server.append("s", turn("i1", "the same question", "the same answer"));
    const [asked, started, ...said] = turn("i2", "stop the races", "I look at it.");
    const done = said.pop();
    const output = Array.from({ length: 300 }, (_, i) => `line ${i + 1}`).join("\n");
    const tools = working("i2", "", "", { output, state: { n: 1 } }).filter((e) => e.type.startsWith("TOOL_CALL"));
    await server.append("s", [asked, started, ...said, ...tools]);
    await server.append(
      "s",
      said.map((e) => ({ ...e, data: { ...e.data, messageId: "more" } })),
    );
    const { head } = await server.call("GET", "/sessions/s");
    const lock = said.map((e) => ({ ...e, data: { ...e.data, messageId: "lock", delta: "Use a lock for it." } }));
    await server.append("s", [...lock, done]);
    await server.call("POST", "/sessions/s/fork", { at: head, id: "f", title: "With a queue" });
    await server.append("f", turn("j1", "use a queue", "Use a queue for it."));
  };
  await onPage(path, fill, check, options);
}

/** Whether an element is in view and covered by nothing. */
const inView = (locator) =>
  locator.evaluate((el) => {
    const { left, top, bottom } = el.getBoundingClientRect();
    return bottom <= innerHeight && el.contains(document.elementFromPoint(left + 2, top + 2));
  });

export const checks = {
  "the branches graph shows forks at their branch point, and reverted turns": () =>
    branched(async (page) => {
      await graph(page).getByRole("treeitem").first().waitFor();
      const names = await graph(page)
        .getByRole("treeitem")
        .evaluateAll((items) => items.map((i) => i.getAttribute("aria-label")));
      assert.deepEqual(names, [
        "question 1, turn 1, in The trunk",
        "question 2, turn 2, in The trunk",
        "question 3, turn 3, in The trunk",
        "question 4, better, turn 4, in The trunk, head, at the playhead",
        "question 4, turn 4, reverted by a rewind",
        "question of the fork, turn 3, in The other way, head",
      ]);
      const x = (name) =>
        graph(page)
          .getByRole("treeitem", { name })
          .evaluate((g) => g.querySelector("circle").getAttribute("cx"));
      assert.equal(await x(/^question 3/), await x(/^question of the fork/));
      assert.equal(await x(/^question 4, better/), await x(/reverted by/));
    }, "/s/s?view=branches"),

  "a click in the graph moves the playhead there, and Enter opens the conversation": () =>
    branched(async (page) => {
      await graph(page)
        .getByRole("treeitem", { name: /reverted by/ })
        .click();
      await isAt(page, 20);
      await graph(page)
        .getByRole("treeitem", { name: /reverted by.*at the playhead/ })
        .waitFor();
      await page.keyboard.press("Enter");
      await conversation(page).getByText("question 4", { exact: true }).waitFor();
      assert.ok(!(await conversation(page).innerText()).includes("better"));
      await page.goBack();
      await graph(page)
        .getByRole("treeitem", { name: /^question of the fork/ })
        .dblclick();
      await until(() => /\/s\/f\?at=/.test(page.url()), "the fork is open");
      await conversation(page).getByText("question of the fork").waitFor();
    }, "/s/s?view=branches"),

  "the graph works by keyboard: arrows move, b forks, c compares": () =>
    branched(async (page, server) => {
      const chosen = () => graph(page).locator("[aria-selected=true]").getAttribute("aria-label");
      await graph(page).focus();
      await until(async () => /better/.test(await chosen()), "it starts at the head");
      for (const [key, name] of [
        ["ArrowDown", /^question 4, turn 4, reverted/],
        ["ArrowDown", /^question of the fork/],
        ["ArrowUp", /reverted by/],
        ["ArrowUp", /better/],
        ["ArrowLeft", /^question 3/],
        ["ArrowLeft", /^question 2/],
      ]) {
        await page.keyboard.press(key);
        await until(async () => name.test(await chosen()), `${key} goes to ${name}`, chosen);
      }
      await page.keyboard.press("b");
      const dialog = page.getByRole("dialog", { name: "Fork here?" });
      await dialog.getByRole("button", { name: "Fork", exact: true }).click();
      await until(() => !/\/s\/s(\?|$)/.test(page.url()), "the new fork is open");
      await conversation(page).getByText("answer 2").waitFor();
      assert.equal((await server.call("GET", "/sessions/s")).head, 32);
      // The next page loads slowly. Meanwhile the old page must not restore its URL.
      await page.route(/\/compare-[^/]*\.js$/, async (r) => {
        await new Promise((ok) => setTimeout(ok, 600));
        await r.continue();
      });
      await page.goto(`${server.url}/s/s?view=branches`);
      await graph(page)
        .getByRole("treeitem", { name: /reverted by/ })
        .waitFor();
      await graph(page).focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("c");
      await until(() => /compare\?a=s.*b=s.*at_a=25|compare\?a=s&at_a=25&b=s/.test(page.url()), "compared", page.url);
      await page.getByText("The same until turn 4.").waitFor();
    }, "/s/s?view=branches"),

  "the branch switcher leads to the other branches and back": () =>
    branched(async (page) => {
      const here = page.getByRole("group", { name: "Branches from here" });
      const label = () => here.getByRole("button", { name: /^Branch / }).getAttribute("aria-label");
      // Two branch points: a fork after the second turn, a rewind after the third.
      await here.getByRole("button", { name: "Branch 2 of 2: The trunk" }).waitFor();
      await here.getByRole("button", { name: "Branch 1 of 2: The trunk" }).waitFor();
      await here.last().getByRole("button", { name: "Previous branch" }).click();
      await conversation(page).getByText("answer 4").waitFor();
      await isAt(page, 25);
      await here.getByRole("button", { name: "Branch 1 of 2: Reverted by a rewind" }).waitFor();
      await here.last().getByRole("button", { name: "Next branch" }).click();
      await conversation(page).getByText("a better answer").waitFor();
      await here
        .first()
        .getByRole("button", { name: /^Branch 1 of 2/ })
        .click();
      const menu = page.getByRole("menu", { name: "Branches" });
      await menu.getByRole("menuitemradio", { name: /The other way question of the fork/ }).press("Enter");
      await conversation(page).getByText("answer of the fork").waitFor();
      await until(async () => (await label()) === "Branch 2 of 2: The other way", "it names the current branch", label);
      await here.getByRole("button", { name: "Previous branch" }).click();
      await until(
        () => /\/s\/s\?at=19/.test(page.url()),
        "the same offset in the trunk",
        () => page.url(),
      );
      await conversation(page).getByText("answer 3").waitFor();
    }),

  "reverted turns are compared with those that replaced them": () =>
    branched(async (page) => {
      await conversation(page).getByRole("button", { name: "Compare" }).click();
      await page.getByText("The same until turn 4.").waitFor();
      await page.getByText("a better answer").first().waitFor();
    }),

  "two sessions are compared: equal turns are folded, the first difference is highlighted": () =>
    diverged(async (page) => {
      await page.getByText("The same until turn 2, after the message of the user.").waitFor();
      assert.ok(!(await page.locator("main").innerText()).includes("the same question"));
      const first = page.getByRole("listitem").filter({ hasText: "First difference" });
      await first.getByText("Turn 2").waitFor();
      assert.deepEqual(await first.locator("del").allInnerTexts(), ["global lock", "1 test failed"]);
      assert.deepEqual(await first.locator("ins").allInnerTexts(), ["queue", "all tests pass"]);
      await page.getByRole("listitem").filter({ hasText: "only in A" }).getByText("No such turn in B").waitFor();
      const sum = (name) => page.getByRole("row", { name }).innerText();
      await until(
        async () => /Tool calls\s+1\s+1\s+=/.test(await sum(/Tool calls/)),
        "tools",
        () => sum(/Tool calls/),
      );
      assert.match(await sum(/^Turns/), /3\s+2\s+−1/);
      const state = page.getByRole("region", { name: "State" });
      await state.getByText("lock", { exact: true }).waitFor();
      await state.getByText("queue", { exact: true }).waitFor();
    }, "/compare?a=a&b=b"),

  "a fork that left in mid-turn: what is the same is folded, and the first difference is in view": () =>
    forkedInMidTurn(async (page) => {
      await page.getByText("The same until turn 2, after a message of the agent.").waitFor();
      const first = page.getByRole("listitem").filter({ hasText: "First difference" });
      const same = first.getByRole("button", { name: "The same: 3 messages, 1 tool call" });
      assert.ok(!(await first.innerText()).includes("line 300"), "it is folded");
      await first.getByText("a lock for it").waitFor();
      await until(() => inView(first.getByText("a lock for it")), "the first difference is in view");
      await same.click();
      await first.getByText("line 300").first().waitFor();
      await same.click();
      await page.keyboard.press("]");
      await page.getByText("2 of 2").waitFor();
      await until(() => inView(page.getByText("a queue for it").first()), "] leads to the next difference");
      await page.keyboard.press("[");
      await page.getByText("1 of 2").waitFor();
      await page.getByRole("button", { name: "Play both" }).click();
      const side = (name) => page.getByRole("region", { name: `${name}, played back` });
      await side("B").getByText("I look at it.").last().waitFor();
      await side("A").getByText("Use a lock for it.").waitFor();
    }, "/compare?a=s&b=f"),

  "on a phone a comparison has one column, nothing is cut off, and its targets are large": () =>
    forkedInMidTurn(
      async (page) => {
        const first = page.getByRole("listitem").filter({ hasText: "First difference" });
        await until(() => inView(first.getByText("a lock for it")), "the first difference is in view");
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.equal(wide, 0, "nothing is cut off at the side");
        const { width } = await first.getByText("a lock for it").boundingBox();
        assert.ok(width > 290, `it has the width of the page: ${width}`);
        for (const button of await page.locator("main").getByRole("button").all()) {
          const box = await button.boundingBox();
          assert.ok(box.height >= 43.5 && box.width >= 43.5, `${await button.innerText()}: ${JSON.stringify(box)}`);
        }
        assert.deepEqual(await faults(page), []);
      },
      "/compare?a=s&b=f",
      { viewport: { width: 390, height: 844 }, hasTouch: true, bypassCSP: true },
    ),

  "the graph says whose branch it is, who answers and where it leaves, and fills its space": () =>
    forkedInMidTurn(async (page) => {
      const branches = page.getByRole("list", { name: "Branches", exact: true });
      await branches.getByText("coder · forked in turn 2 of The trunk, at offset").waitFor();
      const area = await page.getByRole("region", { name: "Branches graph" }).boundingBox();
      const last = await graph(page).getByRole("treeitem").last().boundingBox();
      assert.ok(last.x + last.width > area.x + area.width * 0.7, `${JSON.stringify([last, area])}`);
      await graph(page).locator("text", { hasText: "stop the races" }).waitFor();
    }, "/s/s?view=branches"),

  "two sessions are played together, by turn and by time": () =>
    diverged(async (page) => {
      await page.getByRole("button", { name: "Play both" }).click();
      const side = (name) => page.getByRole("region", { name: `${name}, played back` });
      const bar = page.getByRole("slider", { name: "Position of both sides" });
      const says = () => bar.getAttribute("aria-valuetext");
      await until(async () => (await says()) === "turn 3 of 3", "it plays by itself", says);
      await page.keyboard.press("Home");
      await until(async () => (await says()) === "turn 1 of 3", "it starts where they diverge", says);
      await page.keyboard.press("ArrowRight");
      await side("A").getByText("Use a global lock for it.").waitFor();
      await side("B").getByText("Use a queue for it.").waitFor();
      assert.ok(!(await side("A").innerText()).includes("the same question"), "the common turns are folded");
      assert.ok(!(await side("A").innerText()).includes("only here"));
      await page.keyboard.press("End");
      await side("A").getByText("only here").waitFor();
      await side("B").getByText("Use a queue for it.").waitFor();
      await page.keyboard.press("Home");
      await until(async () => !(await side("B").innerText()).includes("queue"), "back at the start");
      await page.keyboard.press(" ");
      await until(async () => (await says()) === "turn 3 of 3", "it plays to the end", says);
      await page.getByLabel("Step by").selectOption("time");
      await page.keyboard.press("Escape");
      await bar.fill(await bar.getAttribute("max"));
      await side("A").getByText("only here").waitFor();
      await side("B").getByText("Use a queue for it.").waitFor();
    }, "/compare?a=a&b=b"),

  "a fork at the first turn is played together on a phone: both questions are in view, with the words that differ":
    () =>
      onPage(
        "/compare?a=s&b=f",
        async (server) => {
          await server.session({ id: "s", title: "The trunk", agent: "hello" });
          await server.append("s", turn("i1", "Why are the builds of today so slow?", "The cache is cold."));
          await server.session({ id: "f", title: "The other way", agent: "hello" });
          await server.append("f", turn("i1", "Why are the tests of Monday so slow?", "They sleep."));
        },
        async (page) => {
          await page.getByText("They differ from the first turn on.").waitFor();
          assert.deepEqual(await page.locator("del").allInnerTexts(), ["builds", "today", "The cache is cold."]);
          assert.deepEqual(await page.locator("ins").allInnerTexts(), ["tests", "Monday", "They sleep."]);
          await page.getByRole("region", { name: "Comparison" }).evaluate((e) => e.scrollTo(0, e.scrollHeight));
          await page.getByRole("button", { name: "Play both" }).click();
          const side = (name) => page.getByRole("region", { name: `${name}, played back` });
          const bar = page.getByRole("slider", { name: "Position of both sides" });
          await page.keyboard.press("Home");
          for (const seen of [side("A").getByText(/builds of today/), side("B").getByText(/tests of Monday/), bar]) {
            await seen.waitFor();
            await until(() => inView(seen), "both sides and the bar are in view");
          }
          assert.ok(!(await side("A").innerText()).includes("cold"), "it opens at the first difference");
          await page.keyboard.press("End");
          await side("A").getByText("The cache is cold.").waitFor();
          await side("B").getByText("They sleep.").waitFor();
        },
        { viewport: { width: 390, height: 844 }, hasTouch: true },
      ),

  "axe finds no fault in a comparison, light or dark": async () => {
    for (const colorScheme of ["light", "dark"])
      await diverged(
        async (page) => {
          await page.getByRole("button", { name: "Play both" }).click();
          await page.getByRole("region", { name: "A, played back" }).waitFor();
          await page.getByRole("region", { name: "State" }).waitFor();
          assert.deepEqual(await faults(page), []);
        },
        "/compare?a=a&b=b",
        { colorScheme, bypassCSP: true },
      );
  },

  "a thread opens in its own panel, types while it runs, is still in playback, and can be cleared": () =>
    branched(async (page, server) => {
      const event = (type, data) => ({ type, invocation: "t1", thread: "thread_review", data });
      await server.append("s", turn("t0", "review it", "it is fine", "thread_review"));
      await page.getByRole("button", { name: "Open thread_review in a panel" }).click();
      const panel = page.getByRole("complementary", { name: "Thread thread_review" });
      await panel.getByText("it is fine").waitFor();
      assert.ok(!(await panel.innerText()).includes("question 1"));
      await server.append("s", [
        event("message.added", { message: { id: "tu", role: "user", content: "and again" } }),
        event("RUN_STARTED", { threadId: "thread_review", runId: "t1" }),
      ]);
      await panel.getByText("The agent is working").waitFor();
      await server.append("s", [
        event("TEXT_MESSAGE_START", { messageId: "ta", role: "assistant" }),
        event("TEXT_MESSAGE_CONTENT", { messageId: "ta", delta: "looking" }),
      ]);
      await panel.getByText("looking").waitFor();
      const typed = () => panel.locator(".typing-in p").evaluate((el) => getComputedStyle(el, "::after").content);
      await until(async () => (await typed()) === '""', "it has a typing animation");
      const { head } = await server.call("GET", "/sessions/s");
      await page.goto(`${server.url}/s/s?pane=thread_review&at=${head}`);
      await panel.getByText("looking").waitFor();
      await until(async () => (await typed()) === "none", "playback has no typing animation");
      await page.goto(`${server.url}/s/s?pane=thread_review`);
      await server.append("s", [
        event("TEXT_MESSAGE_END", { messageId: "ta" }),
        event("RUN_FINISHED", { threadId: "thread_review", runId: "t1" }),
      ]);
      await panel.getByText("Run complete").nth(1).waitFor();
      await panel.getByRole("button", { name: "Clear" }).click();
      await panel.getByText("No messages in this thread.").waitFor();
      await conversation(page).getByText("a better answer").waitFor();
      await panel.getByRole("button", { name: "Close thread_review" }).click();
      await until(async () => (await panel.count()) === 0, "it is closed");
    }, "/s/s?panel=threads"),

  "a permission request of a sub-agent is answered in the panel of its thread": () =>
    branched(async (page, server) => {
      const main = (type, data) => ({ type, invocation: "m1", data });
      const sub = (type, data) => ({ type, invocation: "t1", thread: "sub", data });
      const options = [
        { id: "yes", name: "Yes", kind: "allow_once" },
        { id: "no", name: "No" },
      ];
      await server.append("s", [
        main("RUN_STARTED", { threadId: "main", runId: "m1" }),
        sub("RUN_STARTED", { threadId: "sub", runId: "t1", parentRunId: "m1" }),
        sub("permission.requested", {
          id: "ask_1",
          message: "May I look?",
          action: { command: "ls\n".repeat(20) },
          options,
        }),
      ]);
      const panel = page.getByRole("complementary", { name: "Thread sub" });
      await panel.getByText("May I look?").waitFor();
      const whole = page.getByRole("region", { name: "Conversation", exact: true });
      assert.equal(await whole.getByText("May I look?").count(), 0, "it is only in the sub-agent's thread");
      const little = panel.getByRole("region", { name: "Conversation in sub" });
      const left = () => little.evaluate((el) => el.scrollHeight - el.clientHeight - el.scrollTop);
      await page.setViewportSize({ width: 1280, height: 420 });
      await until(async () => (await little.evaluate((el) => el.scrollTop)) > 0, "the panel gets smaller and scrolls");
      await until(async () => (await left()) < 2, "the end of the question stays in view");
      await panel.getByRole("button", { name: "Yes" }).click();
      await panel.getByText(/Answered: Yes/).waitFor();
      const { events } = await server.call("GET", "/sessions/s/events?type=permission.answered");
      assert.deepEqual(
        events.map(({ thread, invocation, data }) => [thread, invocation, data.id, data.option]),
        [["sub", "t1", "ask_1", "yes"]],
      );
    }, "/s/s?pane=sub"),

  "two hundred branches and a thousand turns need fewer than 500 elements": async () => {
    const server = await Server.start();
    await server.session({ id: "s", title: "Long" });
    const all = Array.from({ length: 1000 }, (_, i) => turn(`i${i}`, `question ${i}`, "yes"));
    for (let i = 0; i < 1000; i += 100) await server.append("s", all.slice(i, i + 100).flat());
    for (let i = 0; i < 200; i += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          server.call("POST", "/sessions/s/fork", {
            at: 1 + 6 * (400 + ((i + n) % 10)),
            id: `f${i + n}`,
            title: `way ${i + n}`,
          }),
        ),
      );
    const v = await visitor(server);
    await v.page.goto(`${server.url}/s/s?view=branches`);
    const folded = graph(v.page).getByRole("treeitem", { name: /^\d+ turns, folded/ });
    await folded.first().waitFor();
    assert.ok((await v.page.locator("body *").count()) < 500);
    const before = await graph(v.page).getByRole("treeitem").count();
    await folded.first().click();
    await until(async () => (await graph(v.page).getByRole("treeitem").count()) > before, "it is unfolded");
    assert.ok((await v.page.locator("body *").count()) < 500);
    await v.page.getByRole("region", { name: "Branches graph" }).evaluate((el) => el.scrollTo(0, el.scrollHeight));
    await until(
      async () => (await v.page.getByRole("link", { name: "Long" }).count()) === 0,
      "the trunk is out of view",
    );
    assert.ok((await v.page.getByRole("link", { name: /^way \d+$/ }).count()) > 5);
    await v.end();
    await server.stop();
  },

  "axe finds no fault in the graph, light or dark": async () => {
    for (const colorScheme of ["light", "dark"])
      await branched(
        async (page) => {
          await graph(page).focus();
          await page.getByRole("button", { name: "Compare with the head" }).waitFor();
          assert.deepEqual(await faults(page), []);
        },
        "/s/s?view=branches",
        { colorScheme, bypassCSP: true },
      );
  },
};
