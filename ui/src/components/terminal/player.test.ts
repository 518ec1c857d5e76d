// @vitest-environment jsdom

import type { Envelope, JsonObject } from "@tapedeck/client";
import { ChannelLog } from "@tapedeck/client/player";
import { rewound, time } from "@tapedeck/client/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { palettes } from "./colours";
import { TerminalPlayer } from "./player";

// xterm needs a canvas for its colours, and jsdom has none.
vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);

const players: TerminalPlayer[] = [];
afterEach(() => {
  for (const p of players.splice(0)) p.close();
});

async function tape(list: [type: string, data: JsonObject, thread?: string][]) {
  const events: Envelope[] = list.map(([type, data, thread], offset) => ({
    ...(type === "session.rewound" ? rewound(offset, data.toOffset as number) : { offset, timestamp: time(offset) }),
    type,
    channel: type.startsWith("session") ? "session" : "terminal",
    ...(thread ? { thread } : {}),
    ...(type === "session.rewound" ? {} : { data }),
  }));
  const log = new ChannelLog("terminal", {
    event: (offset) => events[offset],
    fetch: async () => {
      throw new Error("not asked");
    },
  });
  const player = new TerminalPlayer(log);
  players.push(player);
  const show = async (at: number, terminal?: string, thread?: string) => {
    await log.load(at);
    player.show({ at, terminal, thread });
    await vi.waitFor(() => expect(player.busy).toBe(false), { timeout: 60_000 });
    return texts(player);
  };
  return { player, show, log };
}

function texts(player: TerminalPlayer): string[] {
  const { screen } = player.get();
  if (!screen) return [];
  return Array.from({ length: screen.length }, (_, y) =>
    screen
      .line(y, palettes.light)
      .map((r) => r.text)
      .join("")
      .trimEnd(),
  );
}

const out = (data: string, terminal = "t"): [string, JsonObject] => ["terminal.output", { terminal, data }];
const size = (cols: number, rows: number, terminal = "t"): [string, JsonObject] => [
  "terminal.resize",
  { terminal, cols, rows },
];

describe("a terminal at the playhead", () => {
  it("has the output before the playhead, forward and back", async () => {
    const { show } = await tape([size(20, 5), out("a\r\n"), out("b\r\n"), out("\x1b[2J\x1b[Hc")]);
    expect(await show(4)).toEqual(["c"]);
    expect(await show(2)).toEqual(["a", ""]);
    expect(await show(3)).toEqual(["a", "b", ""]);
    expect(await show(4)).toEqual(["c"]);
  });

  it("is the same after one step or many", async () => {
    const list = [size(12, 4), ...Array.from({ length: 40 }, (_, i) => out(`\x1b[3${i % 8}m${i} words to wrap\r\n`))];
    list.splice(20, 0, size(30, 6));
    const [one, many] = [await tape(list), await tape(list)];
    for (let at = 1; at < list.length; at++) await many.show(at);
    expect(await many.show(list.length)).toEqual(await one.show(list.length));
  });

  it("keeps its screen when it moves forward, and gets a new one when it moves back", async () => {
    const { player, show } = await tape([out("a"), out("b"), out("c")]);
    await show(1);
    const { screen } = player.get();
    await show(3);
    expect(player.get().screen).toBe(screen);
    await show(2);
    expect(player.get().screen).not.toBe(screen);
  });

  it("leaves out reverted output", async () => {
    const { show } = await tape([out("a"), out("b"), ["session.rewound", { toOffset: 1 }], out("c")]);
    expect(await show(2)).toEqual(["ab"]);
    expect(await show(4)).toEqual(["ac"]);
  });

  it("is the last used terminal, or the chosen one", async () => {
    const { player, show } = await tape([
      out("a", "x"),
      out("b", "y"),
      ["terminal.exit", { terminal: "y", code: 3 }],
      out("c", "x"),
      ["terminal.exit", { terminal: "x", signal: "SIGKILL" }],
      [...out("d", "z"), "side"] as [string, JsonObject, string],
    ]);
    expect(await show(3)).toEqual(["b"]);
    expect(player.get().current).toMatchObject({ id: "y", exit: "exit 3", failed: true });
    expect(await show(4)).toEqual(["ac"]);
    expect(await show(5, "y")).toEqual(["b"]);
    expect(player.get().terminals.map((t) => t.exit)).toEqual(["SIGKILL", "exit 3"]);
    expect(await show(6, undefined, "side")).toEqual(["d"]);
    expect(await show(6, "nobody", "main")).toEqual(["ac"]);
  });

  it("adds a carriage return to line ends only without a known size, as for a pipe", async () => {
    const pipe = await tape([out("a\nb")]);
    expect(await pipe.show(1)).toEqual(["a", "b"]);
    const real = await tape([size(20, 5), out("a\nb")]);
    expect(await real.show(2)).toEqual(["a", " b"]);
  });

  it("uses a size from before the loaded events", async () => {
    const { player, show } = await tape([out("abcdef\nb")]);
    player.setEarlierSizes([
      { offset: 0, channel: "terminal", timestamp: time(0), type: "", data: { terminal: "t", cols: 4, rows: 3 } },
    ]);
    expect(await show(1)).toEqual(["abcd", "ef", "  b"]);
  });

  it("limits its size, and sends no replies", async () => {
    const { player, show } = await tape([
      size(1e9, 1e9),
      size(-1, 0),
      ["terminal.resize", { terminal: "t", cols: "wide" }],
      ["terminal.output", { terminal: 7 }],
      out(`\x1b[6n\x1b[5n\x1b[c\x1b]11;?\x07e${"\u0301".repeat(500)}\u202exyz`),
    ]);
    const [line] = await show(5);
    expect(line?.replaceAll("\u0301", "")).toBe("exyz");
    expect(line?.length).toBeLessThan(20);
    expect(player.get().screen).toMatchObject({ cols: 400, rows: 200 });
  });
});

describe("a line", () => {
  it("groups characters with the same style, and keeps the width of wide ones", async () => {
    const { player, show } = await tape([
      size(40, 3),
      out("\x1b[?25la\x1b[31mb\x1b[1mc\x1b[0m 漢字\x1b[44m x \x1b[0m"),
    ]);
    await show(2);
    const runs = player.get().screen?.line(0, palettes.light) ?? [];
    expect(runs).toEqual([
      { text: "a" },
      { text: "b", style: { color: "#b3261e" } },
      { text: "c", className: "font-bold", style: { color: "#b3261e" } },
      { text: " " },
      { text: "漢字", cells: 4 },
      { text: " x ", style: { color: expect.any(String), backgroundColor: "#1d5fbf" } },
    ]);
  });

  it("shows the cursor, unless it is hidden", async () => {
    const { player, show } = await tape([size(40, 3), out("ab\x1b[D"), out("\x1b[?25l")]);
    await show(2);
    expect(player.get().screen?.line(0, palettes.dark)[1]).toMatchObject({ text: "b", className: "tty-cursor" });
    await show(3);
    expect(player.get().screen?.line(0, palettes.dark)).toEqual([{ text: "ab" }]);
  });
});
