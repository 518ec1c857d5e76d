import assert from "node:assert/strict";
import { faults, onPage, recorded, until } from "./lab.mjs";

const chart = (page) => page.getByRole("region", { name: "Sessions in time" });
const hour = 3_600_000;

/** A server with sessions of the last day, and a page with the time view. */
async function day(check, { sessions, path = "/?view=time", ...options } = {}) {
  const fill = async (server) => {
    const lines = sessions ?? [
      ...recorded("one", "coder", 20 * hour, 2 * hour),
      ...recorded("two", "coder", 10 * hour, 2 * hour, true),
      ...recorded("three", "reviewer", 1 * hour, hour / 2),
    ];
    await server.call("POST", "/import?format=ndjson", `${lines.join("\n")}\n`, "application/x-ndjson");
  };
  await onPage(path, fill, check, options);
}

const range = (page) => {
  const q = new URL(page.url()).searchParams;
  return { from: Number(q.get("t0")), to: Number(q.get("t1")) };
};
const length = (page) => range(page).to - range(page).from;

export const checks = {
  "the time view has a lane for each agent and a named link for each session": () =>
    day(
      async (page) => {
        await page.locator("[data-session=one]").waitFor();
        await page.getByRole("button", { name: "Time", exact: true }).click();
        await chart(page).getByRole("heading", { name: "coder" }).waitFor();
        await chart(page).getByRole("heading", { name: "reviewer" }).waitFor();
        const bar = chart(page).getByRole("link", { name: /^Task two, failed, .*2h 0m, coder$/ });
        await bar.click();
        await until(() => /\/s\/two/.test(page.url()), "it opens");
        await page.getByText("Task two").first().waitFor();
        await page
          .getByRole("region", { name: "Conversation" })
          .or(page.getByText("No messages yet"))
          .first()
          .waitFor();
        await page.goBack();
        await chart(page).waitFor();
        await page.getByRole("button", { name: "List", exact: true }).click();
        await page.getByRole("region", { name: "List of sessions" }).waitFor();
      },
      { path: "/" },
    ),

  "the time view has the filters of the list": () =>
    day(async (page) => {
      await chart(page).getByRole("link").nth(2).waitFor();
      await page.getByLabel("Status").selectOption("failed");
      await until(async () => (await chart(page).getByRole("link").count()) === 1, "one session has failed");
      assert.match(page.url(), /view=time/);
      assert.match(page.url(), /status=failed/);
    }),

  "the time view zooms by wheel, key and button, moves by key and drag, and keeps its range in the URL": () =>
    day(async (page) => {
      await chart(page).getByRole("link").first().waitFor();
      await page.keyboard.press("+");
      await until(() => length(page) > 0, "the URL has the range");
      const first = length(page);
      await page.getByRole("button", { name: "Zoom in" }).click();
      await until(() => length(page) < first, "the button zooms in");
      const second = length(page);
      await page.keyboard.press("-");
      await until(() => length(page) > second, "the key zooms out");
      const third = length(page);
      const box = await chart(page).boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height - 40);
      await page.mouse.wheel(0, -300);
      await until(() => length(page) < third, "the wheel zooms in");
      const before = range(page).from;
      await page.keyboard.press("ArrowLeft");
      await until(() => range(page).from < before, "the arrow moves back in time");
      const then = range(page).from;
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2 - 200, box.y + box.height - 40, { steps: 4 });
      await page.mouse.up();
      await until(() => range(page).from > then, "dragging to the left moves forward in time");
      assert.match(page.url(), /\/\?/, "the drag opens no session");
      const kept = page.url();
      await page.reload();
      await chart(page).waitFor();
      assert.equal(page.url(), kept);
      await page.getByRole("button", { name: "Fit" }).click();
      await until(() => !/t0=/.test(page.url()), "the URL has no range");
    }),

  "sessions in the time view are selected, opened and compared by keyboard": () =>
    day(async (page) => {
      await chart(page).getByRole("link").nth(2).waitFor();
      await page.keyboard.press("k");
      await page.keyboard.press("x");
      await page.keyboard.press("k");
      await page.keyboard.press("x");
      await page.getByText("2 sessions marked").waitFor();
      await page.keyboard.press("c");
      await until(
        () => /compare\?a=three&b=two/.test(page.url()),
        "compared",
        () => page.url(),
      );
      await page.getByRole("heading", { name: "Compare" }).waitFor(); // until then the old page is shown
      await page.goBack();
      await chart(page).getByRole("link").nth(2).waitFor();
      await page.keyboard.press("k");
      await page.keyboard.press("Enter");
      await until(
        () => /\/s\/three/.test(page.url()),
        "the newest is open",
        () => page.url(),
      );
    }),

  "two thousand sessions in the time view need fewer than 500 elements, and the range loads missing ones": async () => {
    const sessions = Array.from({ length: 2000 }, (_, i) =>
      recorded(`n${i}`, `agent ${i % 4}`, 24 * hour - i * 40_000, 30_000, i % 7 === 0),
    ).flat();
    await day(
      async (page) => {
        await chart(page).getByRole("link").first().waitFor();
        for (let n = 0; n < 12; n++) await page.keyboard.press("-");
        await page.getByText("2,000 sessions", { exact: true }).waitFor({ timeout: 120_000 });
        assert.ok((await page.locator("body *").count()) < 500);
        for (let n = 0; n < 12; n++) await page.keyboard.press("+");
        assert.ok((await page.locator("body *").count()) < 500);
      },
      { sessions },
    );
  },

  "axe finds no fault in the time view, light or dark": async () => {
    for (const colorScheme of ["light", "dark"])
      await day(
        async (page) => {
          await chart(page).getByRole("link").first().waitFor();
          assert.deepEqual(await faults(page), []);
        },
        { colorScheme, bypassCSP: true },
      );
  },
};
