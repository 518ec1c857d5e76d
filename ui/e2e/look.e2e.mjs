// What the page looks like: colours that can be told apart, and no flash of what is not meant to be read.
import assert from "node:assert/strict";
import { conversation, onPage, turn, until } from "./lab.mjs";

/** The relative luminance of a colour #rrggbb, as WCAG 2 defines it. */
function luminance(hex) {
  const [r, g, b] = [1, 3, 5]
    .map((i) => Number.parseInt(hex.slice(i, i + 2), 16) / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
  return (x + 0.05) / (y + 0.05);
}

/** The hue of a colour in degrees. */
function hue(hex) {
  const [r, g, b] = [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16) / 255);
  const [max, min] = [Math.max(r, g, b), Math.min(r, g, b)];
  const d = max - min || 1;
  const h = max === r ? (g - b) / d : max === g ? (b - r) / d + 2 : (r - g) / d + 4;
  return (h * 60 + 360) % 360;
}

const apart = (a, b) => Math.min(Math.abs(hue(a) - hue(b)), 360 - Math.abs(hue(a) - hue(b)));

/** The colours of the bar below the markers: how many pixels each has. */
const colours = (page) =>
  page.locator("canvas").evaluate((c) => {
    const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
    const out = {};
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] < 255) continue;
      const name = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      out[name] = (out[name] ?? 0) + 1;
    }
    return out;
  });

export const checks = {
  "in forced colours the playhead, what was played, errors, selection and focus can be told apart": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "hello" });
        await server.append("s", [
          ...turn("i1", "first question", "first answer"),
          { type: "RUN_STARTED", invocation: "i2", data: { threadId: "main", runId: "i2" } },
          { type: "RUN_ERROR", invocation: "i2", data: { message: "it broke" } },
          ...turn("i3", "third question", "third answer"),
        ]);
      },
      async (page) => {
        await page.emulateMedia({ forcedColors: "active" });
        await page.reload();
        await conversation(page).getByText("third answer").waitFor();
        await page.keyboard.press("5");
        await page.getByText("at this moment").waitFor();
        const system = await page.evaluate(() => {
          const ctx = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          const of = (name) => {
            for (const colour of ["Canvas", name]) {
              ctx.fillStyle = colour; // Highlight lets its ground through
              ctx.fillRect(0, 0, 1, 1);
            }
            return [...ctx.getImageData(0, 0, 1, 1).data].slice(0, 3).join(",");
          };
          return Object.fromEntries(["CanvasText", "Highlight", "GrayText", "LinkText"].map((n) => [n, of(n)]));
        });
        await until(async () => {
          const painted = await colours(page);
          return Object.values(system).every((c) => painted[c] > 5);
        }, "the bar has four colours of the system");
        assert.equal(new Set(Object.values(system)).size, 4);
        const row = page.locator("[data-offset]", { hasText: "first answer" });
        const edge = (e) => e.evaluate((x) => getComputedStyle(x).borderLeftColor);
        const before = await edge(row);
        await row.click();
        assert.notEqual(await edge(row), before, "what is selected has an edge");
        assert.equal(await edge(page.locator("[data-offset]", { hasText: "first question" })), before, "and only that");
        await page.keyboard.press("Tab");
        const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineWidth);
        assert.equal(outline, "3px", "the focus is wider than other outlines");
        const chip = page.locator("span[class*=-soft]").first();
        assert.notEqual(await chip.evaluate((e) => getComputedStyle(e).outlineStyle), "none", "a status has an edge");
      },
    ),

  "playhead, selection and errors have colours that can be told apart, and fields have visible borders": async () => {
    for (const colorScheme of ["light", "dark"])
      await onPage(
        "/",
        async () => {},
        async (page) => {
          const of = await page.evaluate(() => {
            const style = getComputedStyle(document.documentElement);
            const names = ["bg", "panel", "raised", "field", "bar", "accent", "playhead", "fault"];
            const long = (c) => (c.length === 4 ? c.replace(/[0-9a-f]/g, "$&$&") : c);
            return Object.fromEntries(names.map((n) => [n, long(style.getPropertyValue(`--${n}`).trim())]));
          });
          for (const name of ["field", "bar", "accent", "playhead", "fault"])
            for (const ground of ["bg", "panel", "raised"])
              assert.ok(contrast(of[name], of[ground]) >= 3, `${name} on ${ground}, ${colorScheme}`);
          assert.ok(contrast(of.playhead, of.fault) >= 3, colorScheme);
          for (const [a, b] of [
            ["playhead", "fault"],
            ["accent", "fault"],
            ["playhead", "accent"],
          ])
            assert.ok(apart(of[a], of[b]) >= 25, `${a} and ${b}, ${colorScheme}: ${apart(of[a], of[b])}`);
        },
        { colorScheme },
      );
  },

  "raw Markdown is never shown, also while its script is late": () =>
    onPage(
      "/",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "hello" });
        await server.append("s", turn("i1", "first question", "**first** answer"));
      },
      async (page, server) => {
        let release;
        const held = new Promise((ok) => {
          release = ok;
        });
        await page.route(/assets\/markdown-/, async (route) => {
          await held;
          await route.continue();
        });
        await page.goto(`${server.url}/s/s`);
        await conversation(page).getByText("first question", { exact: true }).waitFor();
        const raw = conversation(page).getByText("**first** answer");
        await raw.waitFor({ state: "attached" });
        assert.equal(await raw.isVisible(), false);
        release();
        await conversation(page).locator("strong").getByText("first").waitFor();
      },
    ),

  "hidden events are shown with a way back, and Undo": () =>
    onPage(
      "/s/s",
      async (server) => {
        await server.session({ id: "s", title: "A talk", agent: "hello" });
        await server.append("s", [
          ...turn("i1", "first question", "first answer"),
          ...turn("i2", "second question", "second answer"),
        ]);
        await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i2" });
      },
      async (page) => {
        const show = () => page.getByRole("button", { name: "Show hidden" }).click();
        await show();
        await conversation(page).getByText("second answer").waitFor();
        await page.getByRole("button", { name: "Back to now" }).click();
        await until(async () => (await conversation(page).getByText("second answer").count()) === 0, "it is now again");
        assert.equal(await page.getByRole("button", { name: "Back to now" }).count(), 0);
        await show();
        await page
          .getByRole("status")
          .filter({ hasText: "reverted later" })
          .getByRole("button", { name: "Undo" })
          .click();
        await page.getByRole("button", { name: "Redo" }).waitFor();
        await conversation(page).getByText("second answer").waitFor();
      },
    ),

  "a session without a title, and one that has only a terminal, say so": () =>
    onPage(
      "/s/bare",
      async (server) => {
        await server.session({ id: "bare" });
        const cast = `${JSON.stringify({ version: 2, width: 80, height: 24 })}\n${JSON.stringify([0.5, "o", "hello\r\n"])}\n`;
        await server.call("POST", "/import?format=asciicast", cast, "application/octet-stream");
      },
      async (page, server) => {
        await page.getByRole("heading", { level: 1, name: "Untitled session" }).waitFor();
        const { sessions } = await server.call("GET", "/sessions");
        const cast = sessions.find((s) => s.id !== "bare").id;
        await page.goto(`${server.url}/s/${cast}`);
        await page.getByRole("button", { name: "Show the terminal" }).click();
        await page.getByText("hello").first().waitFor();
      },
    ),

  "an unknown session has a heading, and the reason as a sentence": () =>
    onPage(
      "/",
      async () => {},
      async (page, server, v) => {
        v.expected.push(/404/);
        await page.goto(`${server.url}/s/unknown`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await page
          .getByRole("alert")
          .getByText(/^There is no session/)
          .waitFor();
      },
    ),
};
