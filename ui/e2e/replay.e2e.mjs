// Playback. The checks control the clock of the page, so that times are exact and pass at once.
import assert from "node:assert/strict";
import { conversation, importExport, isAt, onPage, position, timed, turn, until } from "./lab.mjs";

/** One word per second. */
function speech(seconds) {
  const inv = { invocation: "i1" };
  return [
    [0, "session.created", { title: "A speech" }],
    [0, "message.added", { message: { id: "u", role: "user", content: "count" } }, inv],
    [0, "RUN_STARTED", { threadId: "main", runId: "i1" }, inv],
    [0, "TEXT_MESSAGE_START", { messageId: "a", role: "assistant" }, inv],
    ...Array.from({ length: seconds }, (_, i) => [
      (i + 1) * 1000,
      "TEXT_MESSAGE_CONTENT",
      { messageId: "a", delta: `w${i + 1} ` },
      inv,
    ]),
    [(seconds + 1) * 1000, "TEXT_MESSAGE_END", { messageId: "a" }, inv],
    [(seconds + 1) * 1000, "RUN_FINISHED", { threadId: "main", runId: "i1" }, inv],
  ];
}

/** A speech with four idle minutes in the middle. */
const paused = () => [
  ...speech(5).slice(0, -2),
  [245_000, "TEXT_MESSAGE_CONTENT", { messageId: "a", delta: "after the pause" }, { invocation: "i1" }],
  [246_000, "TEXT_MESSAGE_END", { messageId: "a" }, { invocation: "i1" }],
  [247_000, "RUN_FINISHED", { threadId: "main", runId: "i1" }, { invocation: "i1" }],
];

/** Stops the clock of the page. From now on only `clock.runFor` advances it. */
async function stopTheClock(page) {
  await page.clock.pauseAt(Date.now() + 3_600_000);
}

const player = (check, events) =>
  onPage(
    "/",
    (server) => importExport(server, timed("s", events)),
    async (page, server, v) => {
      await page.clock.install();
      await page.goto(`${server.url}/s/s`);
      await conversation(page).getByRole("listitem").first().waitFor();
      await isAt(page, events.length);
      await page.getByRole("slider").waitFor();
      await stopTheClock(page);
      await check(page, server, v);
    },
  );

/** Presses keys, and advances the clock so that the page renders. */
async function press(page, ...keys) {
  for (const key of keys) {
    await page.keyboard.press(key);
    await page.clock.runFor(50);
  }
}

const words = async (page) => (await conversation(page).innerText()).match(/w\d+/g) ?? [];
const playing = (page) => page.getByRole("button", { name: "Pause" }).isVisible();

export const checks = {
  "replay: 10 seconds at 1x show exactly the events of 10 seconds": () =>
    player(async (page) => {
      await press(page, "Home", "i");
      await page.keyboard.press(" ");
      await page.clock.runFor(10_500);
      await press(page, " ");
      assert.equal((await words(page)).at(-1), "w10");
      assert.equal((await position(page)).at, 4 + 10);
    }, speech(180)),

  "replay: 10 seconds at 16x show exactly the events of 160 seconds": () =>
    player(async (page) => {
      await press(page, "Home", "i", ">", ">", ">", ">");
      assert.equal(await page.getByLabel("Speed").inputValue(), "16");
      await page.keyboard.press(" ");
      await page.clock.runFor(10_030);
      await press(page, " ");
      const at = (await position(page)).at - 4;
      // The key press takes some frames, and at 16x each frame is a quarter of a second.
      assert.ok(at >= 160 && at <= 162, `it is at ${at} s`);
      assert.equal((await words(page)).at(-1), `w${at}`);
    }, speech(180)),

  "replay: a busy machine that gives React's scheduler no turn plays on without an error": () =>
    onPage(
      "/",
      (server) => importExport(server, timed("s", speech(180))),
      async (page, server) => {
        await page.goto(`${server.url}/s/s?at=5`);
        await conversation(page).getByText("w1", { exact: true }).waitFor();
        await page.getByRole("slider").waitFor();
        await page.keyboard.press(" ");
        await page.evaluate(async () => {
          const { postMessage } = MessagePort.prototype; // React's scheduler waits for its message
          const held = [];
          MessagePort.prototype.postMessage = function (...message) {
            held.push(() => postMessage.apply(this, message));
          };
          const frame = () => new Promise((ok) => requestAnimationFrame(ok));
          for (let n = 0; n < 120; n++) await frame(); // more than React accepts in a loop
          MessagePort.prototype.postMessage = postMessage;
          for (const send of held) send();
        });
        const { at } = await position(page);
        await until(async () => (await position(page)).at > at, "it plays on");
      },
    ),

  "replay: four idle minutes are skipped at once, and the bar stays usable": () =>
    player(async (page) => {
      await press(page, "Home");
      await page.keyboard.press(" ");
      await page.clock.runFor(9_000);
      await conversation(page).getByText("after the pause").waitFor();
      await page.getByRole("slider").click({ position: { x: 2, y: 20 } });
      await page.clock.runFor(50);
      assert.ok((await position(page)).at < 9, "a click on the bar goes back");
    }, paused()),

  "replay: without skipping, four idle minutes take their full time": () =>
    player(async (page) => {
      await press(page, "Home", "i", ">", ">", ">", ">");
      await page.keyboard.press(" ");
      await page.clock.runFor(240_000 / 16);
      assert.ok(!(await conversation(page).innerText()).includes("after the pause"));
      assert.ok(await playing(page));
      await page.clock.runFor(6_000 / 16);
      await until(async () => (await conversation(page).innerText()).includes("after the pause"), "playback continues");
    }, paused()),

  "replay: seeking by click, drag, digits and keys is repeatable, and does not stop playback": () =>
    player(async (page) => {
      const bar = page.getByRole("slider");
      const box = await bar.boundingBox();
      const click = async (share) => {
        await bar.click({ position: { x: box.width * share, y: 20 } });
        await page.clock.runFor(50);
      };
      const seen = async () => `${await conversation(page).innerText()}\n${JSON.stringify(await position(page))}`;
      await click(0.5);
      const middle = await seen();
      assert.ok((await words(page)).length > 80);
      await press(page, "0");
      await isAt(page, 4);
      await press(page, "9");
      assert.ok((await words(page)).length >= 160);
      await click(0.5);
      assert.equal(await seen(), middle, "seeking back shows the same");
      await page.mouse.move(box.x + box.width * 0.5, box.y + 20);
      await page.mouse.down();
      for (const share of [0.4, 0.3, 0.2]) {
        await page.mouse.move(box.x + box.width * share, box.y + 20);
        await page.clock.runFor(60);
      }
      await page.mouse.up();
      await page.clock.runFor(50);
      const dragged = (await position(page)).at;
      assert.ok(dragged > 30 && dragged < 50, `a drag leads to ${dragged}`);
      await press(page, "Alt+.");
      assert.equal((await position(page)).at, dragged + 1);
      await press(page, "Alt+,");
      assert.equal((await position(page)).at, dragged);
      await press(page, ".");
      await isAt(page, 185); // the next step is the end of the message
      await press(page, ",");
      await isAt(page, 2);
      await press(page, "[");
      await isAt(page, 2);
      assert.ok(!(await playing(page)));
      await page.keyboard.press(" ");
      await page.clock.runFor(500);
      await click(0.5);
      assert.ok(await playing(page), "it keeps playing after a seek");
    }, speech(180)),

  "replay of an active session shows how far it is behind live, and can go live again": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk" });
        await server.append("s", turn("i1", "first question", "first answer"));
        await server.append("s", turn("i2", "second question", ["half ", "an answer"]).slice(0, 4));
      },
      async (page, server) => {
        await conversation(page).getByText("half").waitFor();
        await page.keyboard.press("Home");
        await page.getByText("Playback (the agent is not called)").waitFor();
        await page.getByText(/behind live/).waitFor();
        await server.append("s", turn("i2", "", ["", "an answer"]).slice(4));
        await until(async () => (await position(page)).head === 14, "new events arrive");
        assert.ok(!(await page.locator("main").innerText()).includes("half"), "the playhead stays");
        await page
          .getByRole("button", { name: /Go live/ })
          .first()
          .click();
        await conversation(page).getByText("half an answer").waitFor();
        await page.getByText(/behind live/).waitFor({ state: "detached" });
      },
    ),

  "a link to an offset shows the conversation there, with its row in view": () =>
    onPage(
      "/s/s?at=601",
      async (server) => {
        await server.session({ id: "s", title: "A talk" });
        await server.append(
          "s",
          Array.from({ length: 200 }, (_, i) => turn(`i${i}`, `question ${i}`, `answer ${i}`)).flat(),
        );
      },
      async (page) => {
        await isAt(page, 601);
        const row = conversation(page).getByText("answer 99", { exact: true });
        await row.waitFor();
        await until(async () => {
          const [box, area] = [await row.boundingBox(), await conversation(page).boundingBox()];
          return box && area && box.y >= area.y && box.y < area.y + area.height;
        }, "the row is in view");
        assert.ok(!(await conversation(page).innerText()).includes("question 100"));
      },
    ),
};
