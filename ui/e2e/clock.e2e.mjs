// Recording time: what the lengths, the bar and playback say about sessions with any times.
import assert from "node:assert/strict";
import { conversation, importExport, isAt, onPage, position, timed, turn, until } from "./lab.mjs";

const inv = (id) => ({ invocation: id });
const run = (id) => ({ threadId: "main", runId: id });

/** A turn that begins at a time and takes a while, with a word a second. */
function at(id, ms, took) {
  const words = Array.from({ length: took / 1000 - 1 }, (_, n) => n + 1);
  return [
    [ms, "message.added", { message: { id: `u${id}`, role: "user", content: `ask ${id}` } }, inv(id)],
    [ms, "RUN_STARTED", run(id), inv(id)],
    [ms, "TEXT_MESSAGE_START", { messageId: `a${id}`, role: "assistant" }, inv(id)],
    ...words.map((n) => [
      ms + n * 1000,
      "TEXT_MESSAGE_CONTENT",
      { messageId: `a${id}`, delta: `${id}.${n} ` },
      inv(id),
    ]),
    [ms + took, "TEXT_MESSAGE_END", { messageId: `a${id}` }, inv(id)],
    [ms + took, "RUN_FINISHED", run(id), inv(id)],
  ];
}

const day = 86_400_000;
/** Two turns of 60 and 113 seconds, a week apart. */
const talk = () => [[0, "session.created", { title: "A talk" }], ...at("1", 0, 60_000), ...at("2", 7 * day, 113_000)];

const bar = (page) => page.getByRole("region", { name: "Playback" });
const length = async (page) => (await bar(page).innerText()).match(/\/ ([\d:]+)/)?.[1];
const row = (page, id) => page.locator(`[data-session="${id}"]`);

/** What the page says about the length of the session s, in every place. */
async function lengths(page, server) {
  await page.goto(`${server.url}/s/s`);
  await bar(page).waitFor();
  await until(
    async () => (await length(page)) === "2:53",
    "the bar",
    () => length(page),
  );
  await page.getByTitle("Length of the recording: without the time between runs").getByText("2m 53s").waitFor();
  await page.goto(server.url);
  await until(async () => (await row(page, "s").innerText()).includes("2:53"), "the list");
  await page.goto(`${server.url}/?view=time`);
  await page.getByRole("link", { name: /^A .*, 2m 53s/ }).waitFor();
}

export const checks = {
  "neither an import nor a bookmark, a rename, a rewind or its undo changes how long a session is": () =>
    onPage(
      "/",
      (server) => importExport(server, timed("s", talk())), // today, of a talk in January
      async (page, server) => {
        await lengths(page, server);
        await server.append("s", [{ type: "bookmark.added", data: { offset: 5, label: "here" } }]);
        await server.call("PATCH", "/sessions/s", { title: "A long talk" });
        await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "2" });
        await server.call("POST", "/sessions/s/undo", {});
        await lengths(page, server);
        const summary = await server.call("GET", "/sessions/s/summary");
        assert.deepEqual([summary.recording_ms, summary.elapsed_ms, summary.duration_ms], [173_000, 173_000, 173_000]);
      },
    ),

  "the time between two runs is a dotted line on the bar, which says how long it was": () =>
    onPage(
      "/s/s",
      (server) => importExport(server, timed("s", talk())),
      async (page) => {
        const box = await page.getByRole("slider").boundingBox();
        await page.mouse.move(box.x + (box.width * 60) / 173, box.y + box.height - 3);
        await page.getByText("6d 23h left out").waitFor();
        await page.mouse.click(box.x + box.width / 2, box.y + box.height - 3);
        await isAt(page, 94); // 26 words of the second turn, after the 60 seconds of the first
        assert.match(await bar(page).innerText(), /1:26\.\d/);
      },
    ),

  "Go to leads to a time of the recording": () =>
    onPage(
      "/s/s",
      (server) => importExport(server, timed("s", talk())),
      async (page) => {
        await conversation(page).getByText("2.112").waitFor();
        await page.keyboard.press("Control+g");
        const dialog = page.getByRole("dialog", { name: "Go to" });
        await dialog.waitFor();
        await page.keyboard.type("1:30");
        await dialog.getByRole("option").first().waitFor();
        await page.keyboard.press("Enter");
        await dialog.waitFor({ state: "detached" });
        await until(async () => (await bar(page).innerText()).includes("1:30"), "the bar");
      },
    ),

  "events without times are sought and played one by one, and the bar says so": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "All at once" });
        await server.append(
          "s",
          [1, 2, 3, 4, 5, 6].flatMap((n) => turn(`i${n}`, `ask ${n}`, `answer ${n}`)),
        );
      },
      async (page) => {
        await bar(page).getByText("The bar counts events").waitFor();
        const slider = page.getByRole("slider");
        assert.equal(await slider.getAttribute("aria-valuetext"), "event 37 of 37; the bar counts events");
        const box = await slider.boundingBox();
        await page.mouse.click(box.x + box.width / 2, box.y + box.height - 3);
        const middle = await position(page);
        assert.ok(Math.abs(middle.at - 18) <= 1, `the playhead is at ${middle.at}`);
        await bar(page)
          .getByText(`${37 - middle.at} events behind live`)
          .waitFor();
        await slider.press("ArrowRight");
        await isAt(page, middle.at + 1);
        await page.keyboard.press("Escape");
        await bar(page).getByRole("button", { name: "Play", exact: true }).click();
        await until(async () => (await position(page)).at > middle.at + 2, "it plays");
        await bar(page).getByRole("button", { name: "Pause" }).click();
        const { at: paused } = await position(page);
        assert.ok(paused < 37, "it shows five events a second");
        await page.goto(new URL("/", page.url()).href);
        await until(async () => (await row(page, "s").innerText()).includes("37 events"), "the row");
      },
    ),

  "a live session says Live and offers Pause, and is never a negative time behind": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk" });
        await server.append("s", turn("i1", "ask", ["half ", "an answer"]).slice(0, 4));
      },
      async (page, server) => {
        await bar(page).getByText("Live", { exact: true }).waitFor();
        await bar(page).getByRole("button", { name: "Pause" }).click();
        await bar(page).getByText("Live", { exact: true }).waitFor({ state: "detached" });
        await bar(page)
          .getByText(/ behind live/)
          .waitFor();
        await server.append("s", turn("i1", "ask", ["half ", "an answer"]).slice(4));
        await bar(page)
          .getByText(/^(?:[1-9]\d* events?|\d+:\d\d) behind live/)
          .waitFor();
        assert.doesNotMatch(await bar(page).innerText(), /[-−]\d/);
        await bar(page)
          .getByRole("button", { name: /Go live/ })
          .click();
        await bar(page).getByRole("button", { name: "Play", exact: true }).waitFor(); // the run has ended
        await bar(page).getByText("Live", { exact: true }).waitFor({ state: "detached" });
      },
    ),

  "play from here plays": () =>
    onPage(
      "/s/s",
      (server) => importExport(server, timed("s", talk())),
      async (page) => {
        const answer = conversation(page).getByText("1.1 1.2");
        await answer.hover();
        await page
          .locator("[data-offset]")
          .filter({ hasText: "1.1 1.2" })
          .getByRole("button", { name: "Play from here" })
          .click();
        await bar(page).getByRole("button", { name: "Pause" }).waitFor();
        await bar(page).getByText("Playback (the agent is not called)").waitFor();
      },
    ),

  "times ahead, before 1970, going back and years apart are shown calmly": () =>
    onPage(
      "/s/s",
      (server) =>
        importExport(
          server,
          timed("s", [
            [0, "session.created", { title: "Wild" }],
            ...at("1", 0, 10_000),
            ...at("2", -60 * 365 * day, 10_000),
            ...at("3", 900 * 365 * day, 10_000),
            ...at("4", 30 * day, 10_000).map((e, i) => [e[0] + i * 365 * day, ...e.slice(1)]),
          ]),
        ),
      async (page, server) => {
        await bar(page).waitFor();
        assert.equal(await length(page), "0:30");
        for (const [share, at] of [
          [0.15, 9],
          [0.5, 23],
          [0.83, 37],
        ]) {
          const box = await page.getByRole("slider").boundingBox();
          await page.mouse.click(box.x + box.width * share, box.y + box.height - 3);
          await until(
            async () => Math.abs((await position(page)).at - at) <= 1,
            `at ${share}`,
            async () => (await position(page)).at,
          );
        }
        assert.doesNotMatch(await page.locator("main").innerText(), /NaN|Invalid|-\d+:\d\d/);
        for (const path of ["/s/s?view=events", "/", "/?view=time"]) {
          await page.goto(server.url + path);
          await page
            .getByText("Wild")
            .or(page.getByRole("link", { name: /^Wild/ }))
            .first()
            .waitFor();
          assert.doesNotMatch(await page.locator("main").innerText(), /NaN|Invalid/);
        }
      },
    ),
};
