import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Server, until, visitor } from "./lab.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const shown = (page, name = "Terminal t") => page.getByRole("region", { name });
const output = (data, terminal = "t") => ({ type: "terminal.output", data: { terminal, data } });
const resize = (cols, rows, terminal = "t") => ({ type: "terminal.resize", data: { terminal, cols, rows } });
const exit = (code, terminal = "t") => ({ type: "terminal.exit", data: { terminal, code } });

/** A server with a session of these events, and a page with its terminal. */
async function lab(events, check, query = "") {
  const server = await Server.start();
  try {
    await server.session({ id: "s", title: "A terminal" });
    if (events.length > 0) await server.append("s", events);
    const v = await visitor(server);
    await v.page.goto(`${server.url}/s/s?view=terminal${query}`);
    await check(v.page, server, v);
    await v.end();
  } finally {
    await server.stop();
  }
}

/** The visible text of the lines. */
const lines = async (page, name) =>
  (await shown(page, name).locator(".tty-line").allInnerTexts()).map((l) => l.replaceAll("\u00a0", "").trimEnd());

async function reads(page, expected, name) {
  let last;
  await until(
    async () => {
      last = await lines(page, name);
      return JSON.stringify(last) === JSON.stringify(expected);
    },
    `the terminal has ${JSON.stringify(expected)}`,
    () => JSON.stringify(last),
  );
}

async function goTo(page, offset) {
  const url = new URL(page.url());
  if (offset === undefined) url.searchParams.delete("at");
  else url.searchParams.set("at", String(offset));
  await page.goto(url.href);
}

export const checks = {
  "a terminal is shown with its colours, without an exception in the page's policy": () =>
    lab(
      [
        resize(40, 10),
        output("$ make\r\n\x1b[31mred\x1b[0m \x1b[1;44mbold on blue\x1b[0m \x1b[38;2;10;200;30mtrue colour\x1b[0m\r\n"),
        output("wide 漢字 |\r\n\x1b[4munder\x1b[0m \x1b[7minverse\x1b[0m\r\ndone"),
        exit(0),
      ],
      async (page) => {
        await reads(page, ["$ make", "red bold on blue true colour", "wide 漢字 |", "under inverse", "done"]);
        await page.getByText("✓ exit 0").waitFor();
        await page.getByText("40 × 10").waitFor();
        const style = (text) =>
          shown(page)
            .getByText(text, { exact: true })
            .evaluate((el) => ({ color: getComputedStyle(el).color, back: getComputedStyle(el).backgroundColor }));
        assert.equal((await style("red")).color, "rgb(179, 38, 30)");
        assert.equal((await style("bold on blue")).back, "rgb(29, 95, 191)");
        assert.notEqual((await style("true colour")).color, (await style("red")).color);
      },
    ),

  "a terminal follows the playhead back, forward and live": () =>
    lab([resize(40, 10), output("one\r\n"), output("two\r\n"), output("\x1b[2J\x1b[Hthree")], async (page, server) => {
      await reads(page, ["three"]);
      await page.keyboard.press("Alt+,");
      await reads(page, ["one", "two", ""]);
      await page.keyboard.press("Alt+,");
      await reads(page, ["one", ""]);
      await page.keyboard.press("Alt+.");
      await reads(page, ["one", "two", ""]);
      await goTo(page, 3);
      await reads(page, ["one", ""]);
      await page.keyboard.press("L");
      await reads(page, ["three"]);
      await server.append("s", [output("\r\nfour")]);
      await reads(page, ["three", "four"]);
    }),

  "the last used terminal is shown until another one is chosen": () =>
    lab([output("first\n", "a"), output("second\n", "b"), exit(2, "b")], async (page, server) => {
      await reads(page, ["second", ""], "Terminal b");
      await page.getByText("✕ exit 2").waitFor();
      await server.append("s", [output("again\n", "a")]);
      await reads(page, ["first", "again", ""], "Terminal a");
      await page.getByRole("combobox", { name: "Terminal" }).selectOption("b");
      await reads(page, ["second", ""], "Terminal b");
      await until(() => page.url().includes("term=b"), "the URL has it");
      await page.reload();
      await reads(page, ["second", ""], "Terminal b");
    }),

  "reverted output is not on the terminal, and undo restores it": () =>
    lab([output("one\n"), output("two\n")], async (page, server) => {
      await reads(page, ["one", "two", ""]);
      await server.call("POST", "/sessions/s/rewind", { to_offset: 2 });
      await reads(page, ["one", ""]);
      await server.call("POST", "/sessions/s/undo");
      await reads(page, ["one", "two", ""]);
    }),

  "an asciinema recording becomes a session whose terminal can be played back": async () => {
    const server = await Server.start();
    try {
      const cast = [
        { version: 2, width: 30, height: 5, timestamp: 1767600000, title: "A recording" },
        [0.1, "o", "$ ls\r\n"],
        [1.5, "o", "a.txt  \x1b[34mfolder\x1b[0m\r\n"],
        [2, "r", "60x8"],
        [2.5, "o", "$ "],
      ];
      const made = await server.call(
        "POST",
        "/import?format=auto",
        cast.map((l) => JSON.stringify(l)).join("\n"),
        "application/octet-stream",
      );
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/${made.sessions[0]}?view=terminal`);
      await reads(v.page, ["$ ls", "a.txt  folder", "$"], "Terminal terminal");
      await v.page.getByText("60 × 8").waitFor();
      await v.page.keyboard.press("Home");
      await until(async () => (await v.page.getByText("No terminal output").count()) === 1, "no terminal yet");
      await v.page.keyboard.press("Space");
      await reads(v.page, ["$ ls", "a.txt  folder", "$"], "Terminal terminal");
      await v.end();
    } finally {
      await server.stop();
    }
  },

  "hostile escape sequences change nothing but the terminal": () =>
    lab(
      [
        resize(100000, 100000),
        output("\x1b]0;pwned\x07\x1b]52;c;cHduZWQ=\x07\x1b]8;;javascript:window.pwned=1\x07link\x1b]8;;\x07 "),
        output("\x1b[6n\x1b[c\x1b[8;9999;9999t\x1b[?1049h\x1b[?1049l<script>window.pwned=2</script> \u202egnp.exe"),
        output(`\r\na${"\u0301".repeat(5000)}b \x1bP+q544e\x1b\\\x1b_Gf=100;AAAA\x1b\\`),
      ],
      async (page, server) => {
        await shown(page).getByText("<script>window.pwned=2</script>").waitFor();
        await until(
          async () => (await page.title()) === "A terminal · Tapedeck",
          "the page title is the session's title",
        );
        assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
        assert.equal(await shown(page).locator("a, script, style, img, canvas, textarea").count(), 0);
        assert.ok((await shown(page).innerText()).length < 1000, "combining marks are limited");
        await page.getByText("400 × 200").waitFor();
        const { head } = await server.call("GET", "/sessions/s");
        assert.equal(head, 5, "the terminal sent no replies");
      },
    ),

  "a terminal does not trap the keyboard, and scrolls": () =>
    lab([output(Array.from({ length: 3000 }, (_, i) => `line ${i}\n`).join(""))], async (page) => {
      await shown(page).getByText("line 2999").waitFor();
      assert.ok((await shown(page).locator(".tty-line").count()) < 100, "only the visible lines are on the page");
      await shown(page).focus();
      await page.keyboard.press("Control+Home");
      await shown(page).getByText("line 0", { exact: true }).waitFor();
      await page.keyboard.press("Tab");
      assert.ok(!(await shown(page).evaluate((el) => el.contains(document.activeElement))));
      await page.keyboard.press("g");
      await page.keyboard.press("e");
      await page.getByRole("searchbox").waitFor();
      await page.keyboard.press("g");
      await page.keyboard.press("t");
      await shown(page).waitFor();
    }),

  "axe finds no fault in a terminal and the people panel, light or dark": async () => {
    const server = await Server.start();
    try {
      await server.session({ id: "s", title: "A terminal" });
      const named = Array.from(
        { length: 8 },
        (_, i) => `\x1b[3${i}mtext\x1b[0m \x1b[2;9${i}mtext\x1b[0m \x1b[4${i}mon\x1b[0m `,
      );
      const others = [16, 21, 46, 120, 226, 231, 244].map(
        (i) => `\x1b[38;5;${i}mtext\x1b[0m \x1b[48;5;${i}mon\x1b[0m `,
      );
      await server.append("s", [output(`${[...named, ...others].join("\r\n")}\r\n`), exit(1), output("x", "u")]);
      for (const [user, state] of [["Ada", "typing"], ["Bob", "away"], ["Cy"], ["Dee"], ["Eve"], ["Flo"]])
        await server.call("POST", "/sessions/s/presence", { action: "join", user, cursor: { state } });
      for (const colorScheme of ["light", "dark"]) {
        const v = await visitor(server, { colorScheme, bypassCSP: true });
        for (const path of ["view=terminal&term=t", "panel=people"]) {
          await v.page.goto(`${server.url}/s/s?${path}`);
          await v.page.getByRole("button", { name: /^Also here: Ada \(typing\), Bob/ }).waitFor();
          if (path.includes("term")) await shown(v.page).getByText("text").first().waitFor();
          await v.page.evaluate(axe);
          const { violations } = await v.page.evaluate(() => globalThis.axe.run());
          assert.deepEqual(
            violations.map((x) => `${colorScheme} ${path} ${x.id}: ${x.nodes.map((n) => n.html)}`),
            [],
          );
        }
        await v.end();
      }
    } finally {
      await server.stop();
    }
  },

  "of a long session only the end of the terminal is loaded": async () => {
    const server = await Server.start();
    try {
      await server.session({ id: "s", title: "Long" });
      await server.append("s", [resize(50, 10)]);
      const block = output(`${"x".repeat(48)}\r\n`.repeat(1000));
      for (let i = 0; i < 100; i++) await server.append("s", [block]);
      const filler = Array.from({ length: 2000 }, (_, i) => ({ type: "acme.note", data: { i } }));
      for (let i = 0; i < 26; i++) await server.append("s", filler);
      await server.append("s", [output("the end")]);
      const v = await visitor(server);
      let bytes = 0;
      v.page.on("response", async (r) => {
        if (r.url().includes("channel=terminal")) bytes += (await r.body().catch(() => "")).length;
      });
      await v.page.goto(`${server.url}/s/s?view=terminal`);
      await shown(v.page).getByText("the end").waitFor();
      await v.page.getByText("Older output is not shown").waitFor();
      await v.page.getByText("50 × 10").waitFor();
      assert.ok(bytes < 5_000_000, `${bytes} bytes were loaded`);
      await v.end();
    } finally {
      await server.stop();
    }
  },
};
