// Accessibility: axe, keyboard only, zoom, reduced motion.
import assert from "node:assert/strict";
import { conversation, faults, isAt, onPage, position, turn, until } from "./lab.mjs";

async function talk(server) {
  await server.session({ id: "s", title: "A talk", agent: "hello", state: { step: 1 } });
  await server.append("s", [
    ...turn("i1", "first question", "**first** answer"),
    { type: "RUN_STARTED", invocation: "t1", data: { threadId: "main", runId: "t1" } },
    { type: "TOOL_CALL_START", invocation: "t1", data: { toolCallId: "c1", toolCallName: "Bash" } },
    { type: "TOOL_CALL_ARGS", invocation: "t1", data: { toolCallId: "c1", delta: '{"command":"ls"}' } },
    { type: "TOOL_CALL_END", invocation: "t1", data: { toolCallId: "c1" } },
    { type: "TOOL_CALL_RESULT", invocation: "t1", data: { toolCallId: "c1", messageId: "r1", content: "a.txt" } },
    { type: "terminal.output", invocation: "t1", data: { terminal: "t", data: "hello\r\n" } },
    { type: "RUN_FINISHED", invocation: "t1", data: { threadId: "main", runId: "t1" } },
    ...turn("i2", "second question", "second answer"),
  ]);
  await server.call("POST", "/sessions/s/fork", { at: 7, id: "branch", title: "Another way" });
  await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i2" });
  await server.session({ id: "threads", title: "Side by side", agent: "hello" });
  await server.append("threads", [
    ...turn("m1", "build it", "it is built"),
    ...turn("r1", "look at it", "a side remark", "review"),
  ]);
}

const pages = [
  ["/", "A talk"],
  ["/?q=question", "A talk"],
  ["/s/s", "Rewound"],
  ["/s/s?at=4", "Playback (the agent is not called)"],
  ["/s/s?view=events", "session.rewound"],
  ["/s/s?view=branches", "Another way"],
  ["/s/s?panel=plan", "Rewound"],
  ["/s/s?panel=state", "Rewound"],
  ["/s/s?panel=threads", "Rewound"],
  ["/s/s?panel=summary", "Input tokens"],
  ["/s/s?panel=people", "Rewound"],
  ["/s/threads?panel=threads&pane=review", "a side remark"],
  ["/s/s?view=terminal", "hello"],
  ["/compare?a=s&b=branch", "Compare"],
  ["/import", "Import"],
];

async function withoutFault(page, what) {
  assert.deepEqual(await faults(page), [], what);
}

const dialogs = [
  ["?", "Keyboard shortcuts"],
  ["Control+k", "Command palette"],
  ["Control+g", "Go to"],
  ["b", "Fork here?"],
];

/** One check per colour scheme: all pages take long on a slow machine. */
const faultless = (colorScheme) => () =>
  onPage(
    "/",
    talk,
    async (page, server) => {
      for (const [path, text] of pages) {
        await page.goto(server.url + path);
        await page.getByText(text).first().waitFor();
        await withoutFault(page, path);
      }
    },
    { colorScheme, bypassCSP: true },
  );

/** The width in pixels that is cut off at the side. */
const sideways = (page) =>
  page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });

export const checks = {
  "axe finds no fault on any page in the light theme": faultless("light"),
  "axe finds no fault on any page in the dark theme": faultless("dark"),

  "axe finds no fault in any dialog": () =>
    onPage(
      "/s/s",
      talk,
      async (page) => {
        await conversation(page).getByText("first answer").waitFor();
        for (const [key, name] of dialogs) {
          await page.keyboard.press(key);
          await page.getByRole("dialog", { name }).waitFor();
          await withoutFault(page, name);
          await page.keyboard.press("Escape");
          await page.getByRole("dialog").waitFor({ state: "detached" });
        }
        await page.keyboard.press("Control+f");
        await page.getByRole("searchbox", { name: "Find" }).waitFor();
        await withoutFault(page, "find");
      },
      { bypassCSP: true },
    ),

  "each row of a long conversation has its number, and the number of all rows": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk" });
        const turns = Array.from({ length: 40 }, (_, i) => turn(`i${i}`, `question ${i}`, `answer ${i}`));
        await server.append("s", turns.flat());
      },
      async (page) => {
        await conversation(page).getByText("answer 39").waitFor();
        const rows = () =>
          page.evaluate(() =>
            [...document.querySelectorAll("[aria-label=Conversation] > ol > li")].map((li) => [
              Number(li.dataset.index) + 1,
              Number(li.ariaPosInSet),
              Number(li.ariaSetSize),
            ]),
          );
        const shown = await rows();
        assert.ok(shown.length < 60, "only visible rows have elements");
        const size = shown.at(-1)[0]; // the conversation is at its end
        assert.ok(size >= 80, `${size} rows`);
        for (const row of shown) assert.deepEqual(row.slice(1), [row[0], size]);
      },
    ),

  "a session is opened, played, searched, rewound and restored by keyboard only": () =>
    onPage(
      "/",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "hello" });
        await server.append("s", [
          ...turn("i1", "first question", "first answer"),
          ...turn("i2", "second question", "second answer"),
        ]);
      },
      async (page) => {
        const { keyboard } = page;
        await page.locator("[data-session=s]").waitFor();
        await keyboard.press("j");
        await keyboard.press("Enter");
        await conversation(page).getByText("second answer").waitFor();
        await isAt(page, 13);
        await keyboard.press("Home");
        await isAt(page, 1);
        await keyboard.press(" ");
        await isAt(page, 13);
        await keyboard.press("u");
        await keyboard.press("U");
        await until(async () => (await position(page)).at < 13, "the playhead has moved back");
        await keyboard.press("L");
        await isAt(page, 13);
        await keyboard.press("g");
        await keyboard.press("e");
        await page.getByRole("region", { name: "Events" }).waitFor();
        await keyboard.press("g");
        await keyboard.press("c");
        await conversation(page).getByText("second question").waitFor();
        await keyboard.press("/");
        await keyboard.type("second question");
        await page.getByText("1 of 1", { exact: true }).waitFor();
        await keyboard.press("Escape");
        await keyboard.press("k");
        await keyboard.press("k");
        await keyboard.press("k");
        await keyboard.press("k");
        await keyboard.press("j");
        await keyboard.press("j");
        await keyboard.press("j");
        await keyboard.press("r");
        const dialog = page.getByRole("dialog", { name: "Rewind to here?" });
        await dialog.waitFor();
        const rewind = dialog.getByRole("button", { name: "Rewind", exact: true });
        const reached = async (button) => {
          await keyboard.press("Tab");
          return button.evaluate((el) => el === document.activeElement);
        };
        await until(() => reached(rewind), "Tab reaches Rewind");
        await keyboard.press("Enter");
        await until(async () => !(await conversation(page).innerText()).includes("second answer"), "it is hidden");
        await until(() => reached(page.getByRole("button", { name: "Undo" })), "Tab reaches Undo");
        await keyboard.press("Enter");
        await conversation(page).getByText("second answer").waitFor();
      },
    ),

  "at 200 % and 400 % zoom no content is cut off at the side, and all controls can be reached": () =>
    onPage(
      "/",
      talk,
      async (page, server) => {
        for (const [width, height] of [
          [640, 400],
          [320, 400],
        ]) {
          await page.setViewportSize({ width, height });
          for (const [path, text] of pages) {
            await page.goto(server.url + path);
            await page.getByText(text).first().waitFor();
            await until(async () => (await sideways(page)) === 0, `${path} fits ${width} pixels`);
          }
          await page.goto(`${server.url}/s/s`);
          await conversation(page).getByText("Rewound").waitFor();
          await page.getByRole("button", { name: "Panel" }).click();
          await page.getByRole("tab", { name: "Tools" }).waitFor();
          await page.getByRole("button", { name: "Panel" }).click();
          await page.getByRole("tab", { name: "Tools" }).waitFor({ state: "detached" });
          await page.getByRole("button", { name: "Play" }).scrollIntoViewIfNeeded();
          await page.getByRole("button", { name: "Play" }).click({ trial: true });
        }
      },
      { viewport: { width: 640, height: 400 } },
    ),

  "with reduced motion the page has no animations": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk" });
        await server.append("s", turn("i1", "first question", ["half ", "an answer"]).slice(0, 4));
      },
      async (page) => {
        await conversation(page).getByText("half").waitFor();
        const moving = () =>
          page.evaluate(() => document.getAnimations().filter((a) => a.playState === "running").length);
        assert.equal(await moving(), 0);
        await page.emulateMedia({ reducedMotion: "no-preference" });
        await until(async () => (await moving()) > 0, "without reduced motion, the typing is animated");
      },
      { reducedMotion: "reduce" },
    ),
};
