import { expect, test } from "vitest";
import { Deck } from "./deck.ts";
import { folded, rewound, texts, time, turns, World } from "./fake.ts";
import { spanSpeed } from "./state.ts";

/** A long timeout for tests with many events, for slow machines. */
const slow = 60_000;

async function opened(world: World, at?: number): Promise<Deck> {
  const deck = new Deck("s", at, world.options());
  deck.open();
  await world.settle();
  await world.settle();
  return deck;
}

test("it opens at the head and reports the time there", async () => {
  const world = new World(turns(3));
  const deck = await opened(world);
  const s = deck.get();
  expect(s).toMatchObject({ live: true, at: 28, head: 28, seeking: false, position: 2600, length: 2600, axis: "time" });
  expect(texts(s.view)).toEqual(texts(folded(world.events, 28)));
  expect(s.view?.session).toMatchObject({ id: "s", title: "Turns", status: "complete" });
  expect(s.index?.markers).toHaveLength(3);
});

test("a link to an offset shows that offset", async () => {
  const world = new World(turns(3));
  const deck = await opened(world, 7);
  expect(deck.get()).toMatchObject({ live: false, at: 7, head: 28 });
  expect(texts(deck.get().view)).toEqual(texts(folded(world.events, 7)));
});

test("at every offset, in any order, it shows the conversation as of that offset", async () => {
  const events = turns(4);
  events.push(
    rewound(events.length, 10),
    ...turns(6)
      .slice(37, 46)
      .map((e, i) => ({ ...e, offset: 38 + i })),
  );
  events.push(rewound(events.length, 37)); // undone
  events.push(rewound(events.length, 19));
  const world = new World(events);
  const deck = await opened(world);
  let at = 0;
  for (let i = 0; i < 200; i++) {
    at = (at * 31 + 17) % (events.length + 1);
    deck.seek(at);
    world.draw();
    const want = folded(events, Math.max(1, at));
    expect(JSON.stringify(deck.get().view?.messages), `at ${at}`).toEqual(JSON.stringify(want.messages));
    expect(deck.get().view?.runs, `at ${at}`).toEqual(want.runs);
  }
});

test("events of the stream are shown once, with at most one update a frame", async () => {
  const all = turns(3);
  const world = new World(all.slice(0, 20));
  const deck = await opened(world);
  let told = 0;
  deck.subscribe(() => told++);
  world.append(...all.slice(20));
  world.draw();
  expect(told).toBe(1);
  expect(deck.get()).toMatchObject({ at: 28, head: 28, live: true });
  expect(texts(deck.get().view)).toEqual(texts(folded(all, 28)));
});

test("events that come while the session is being opened are not lost", async () => {
  const all = turns(3);
  const world = new World(all.slice(0, 20));
  world.head = 20;
  const deck = new Deck("s", undefined, world.options());
  deck.open();
  for (let i = 0; i < 3; i++) await Promise.resolve();
  expect(world.asked).toContain("follow 20");
  world.append(...all.slice(20));
  await world.settle();
  await world.settle();
  expect(deck.get()).toMatchObject({ at: 28, head: 28 });
  expect(texts(deck.get().view)).toEqual(texts(folded(all, 28)));
});

test("a live rewind reverts its events", async () => {
  const world = new World(turns(3));
  const deck = await opened(world);
  world.append(rewound(28, 10));
  await world.settle();
  expect(texts(deck.get().view)).toEqual(["user: ask 1", "assistant: 1.0 1.1 1.2 1.3 "]);
  deck.seek(28); // before the rewind, the events are active
  await world.settle();
  expect(deck.get().view?.messages).toHaveLength(6);
});

test("new events do not move the playhead away from the past", async () => {
  const all = turns(3);
  const world = new World(all.slice(0, 20));
  const deck = await opened(world);
  deck.seek(5);
  world.append(...all.slice(20));
  await world.settle();
  expect(deck.get()).toMatchObject({ at: 5, head: 28, live: false });
  deck.goLive();
  await world.settle();
  expect(deck.get()).toMatchObject({ at: 28, live: true });
});

test("playing for ten seconds shows the events of ten seconds", async () => {
  const world = new World(turns(30));
  for (const [speed, ms] of [
    [1, 10_000],
    [4, 2500],
    [16, 625],
  ] as const) {
    const deck = await opened(world, 1);
    deck.setSpeed(speed);
    deck.toggle();
    world.draw();
    await world.pass(ms);
    deck.toggle();
    await world.settle();
    expect(deck.get().position).toBe(10_000);
    expect(deck.get().at).toBe(102);
    expect(texts(deck.get().view)).toEqual(texts(folded(world.events, 102)));
  }
});

test("idle times are skipped at once, unless skipping is off", async () => {
  const events = turns(1).map((e) => (e.offset < 5 ? e : { ...e, timestamp: time(240_000 + e.offset * 100) }));
  const deck = await opened(new World(events), 5);
  expect(deck.get().skipIdle).toBe(true);
  for (const skip of [true, false]) {
    const world = new World(events);
    const d = await opened(world, 5);
    d.setSkipIdle(skip);
    d.toggle();
    world.draw();
    await world.pass(50);
    expect(d.get().at).toBe(skip ? 6 : 5);
    expect(d.get().playing).toBe(true);
  }
});

test("it stops at the end, and plays again from the beginning", async () => {
  const world = new World(turns(1));
  const deck = await opened(world, 8);
  deck.toggle();
  world.draw();
  await world.pass(2000);
  expect(deck.get()).toMatchObject({ at: 10, playing: false, live: false });
  deck.toggle();
  world.draw();
  await world.pass(50);
  expect(deck.get()).toMatchObject({ at: 1, playing: true });
});

test("a part is played alone: it stops after its last event, and a short one is slow", async () => {
  const world = new World(turns(3));
  const deck = await opened(world);
  deck.playSpan(10, 19); // 0.8 s
  world.draw();
  expect(deck.get()).toMatchObject({ at: 10, playing: true, live: false, span: { to: 19, speed: 0.2 } });
  await world.pass(2000);
  expect(deck.get().at).toBeGreaterThan(10);
  expect(deck.get()).toMatchObject({ playing: true });
  expect(deck.get().at).toBeLessThan(19);
  await world.pass(4000);
  expect(deck.get()).toMatchObject({ at: 19, playing: false, live: false, span: undefined, speed: 1 });
  deck.toggle(); // from there on it plays as always
  world.draw();
  await world.pass(2000);
  expect(deck.get()).toMatchObject({ at: 28, playing: false });
  deck.playSpan(2, 4);
  deck.seek(6); // a seek leaves the part and shows the whole session
  world.draw();
  expect(deck.get()).toMatchObject({ span: undefined, playing: true });
});

test("a part is played at least three seconds, and not faster than wanted", () => {
  expect([400, 3000, 61, 319, 60_000].map((ms) => spanSpeed(ms, 1))).toEqual([0.1, 1, 0.02, 0.1, 1]);
  expect(spanSpeed(10_000, 16)).toBe(2);
  expect(spanSpeed(60_000, 0.5)).toBe(0.5);
  expect(spanSpeed(0, 1)).toBe(0.01);
});

test("a rewind is played back as it happened", async () => {
  const events = [...turns(2), rewound(19, 10)];
  const world = new World(events);
  const deck = await opened(world, 15);
  deck.toggle();
  world.draw();
  await world.pass(350);
  expect(deck.get().at).toBe(18);
  expect(deck.get().view?.messages).toHaveLength(4);
  await world.pass(200);
  expect(deck.get().at).toBe(20);
  expect(deck.get().view?.messages).toHaveLength(2);
});

test("seeking while it plays keeps it playing", async () => {
  const world = new World(turns(30));
  const deck = await opened(world, 1);
  deck.toggle();
  world.draw();
  deck.seek(100);
  await world.pass(100);
  expect(deck.get()).toMatchObject({ playing: true, at: 101 });
});

test("times, steps and markers are found", async () => {
  const world = new World(turns(3));
  const deck = await opened(world);
  deck.seekPosition(1150);
  world.draw();
  expect(deck.get()).toMatchObject({ at: 13, position: 1150 });
  deck.step(1, "item"); // to the end of the answer
  world.draw();
  expect(deck.get().at).toBe(18);
  deck.step(-1, "item");
  world.draw();
  expect(deck.get().at).toBe(11); // the user's message
  deck.step(1, "event");
  world.draw();
  expect(deck.get().at).toBe(12);
  deck.toMarker(1, (m) => m.kind === "user");
  world.draw();
  expect(deck.get().at).toBe(20);
  deck.toMarker(-1, (m) => m.kind === "user");
  world.draw();
  expect(deck.get().at).toBe(11);
});

test(
  "of a long session only the events near the playhead are loaded",
  async () => {
    const events = turns(10_000); // 90,001 events
    const world = new World(events);
    const deck = await opened(world);
    expect(deck.get()).toMatchObject({ at: 90_001, live: true, seeking: false });
    for (const at of [45_000, 45_700, 12, 89_000]) {
      deck.seek(at);
      await world.settle();
      await world.settle();
      expect(deck.get()).toMatchObject({ at, seeking: false });
      expect(texts(deck.get().view)?.slice(-5)).toEqual(texts(folded(events, at))?.slice(-5));
    }
    deck.seekPosition(2_999_950);
    await world.settle();
    await world.settle();
    expect(deck.get().at).toBe(30_001);
    const loaded = world.asked.filter((a) => a.startsWith("events")).length;
    expect(loaded).toBeLessThan(20);
    expect(world.asked.filter((a) => a === "snapshot 45700")).toEqual([]); // near enough to the loaded keyframe
  },
  slow,
);

test(
  "in a long session, seeks within one chunk request its keyframe and events once",
  async () => {
    const world = new World(turns(6_000));
    const deck = await opened(world);
    world.asked = [];
    deck.seek(3_700);
    deck.seek(3_600); // the first request is not needed any more
    await world.settle();
    await world.settle();
    expect(deck.get()).toMatchObject({ at: 3_600, seeking: false });
    expect(world.asked.toSorted()).toEqual(["events 3000+1000", "snapshot 3000"]);
    for (const at of [3_900, 3_001, 3_500]) {
      deck.seek(at);
      expect(deck.get(), "without a frame between").toMatchObject({ at, seeking: false });
      expect(texts(deck.get().view)?.slice(-5)).toEqual(texts(folded(world.events, at))?.slice(-5));
    }
    expect(world.asked).toHaveLength(2);
  },
  slow,
);

test(
  "the memory for a long session does not grow with the number of seeks",
  async () => {
    const world = new World(turns(10_000));
    const o = world.options();
    const some = folded(world.events, 10); // its content does not matter here
    const api = { ...o.api!, snapshot: async (_: string, q = {}) => ({ ...some, at: 90_001, ...q }) };
    const deck = new Deck("s", undefined, { ...o, api });
    deck.open();
    await world.settle();
    for (let at = 500; at < 90_000; at += 1000) {
      deck.seek(at);
      await world.settle();
      await world.settle();
      expect(deck.get()).toMatchObject({ at, seeking: false });
    }
    const pages = Array.from({ length: 90 }, (_, i) => i).filter((i) => deck.event(i * 1000));
    expect(pages.length).toBeLessThan(36);
    expect(deck.event(89_500)).toBeDefined();
  },
  slow,
);

test(
  "a session that grows beyond the limit while it is watched is then kept in part",
  async () => {
    const all = turns(6_000); // 54,001 events
    const world = new World(all.slice(0, 49_000));
    const deck = await opened(world);
    await world.settle();
    expect(deck.event(0)).toBeDefined();
    world.append(...all.slice(49_000));
    await world.settle();
    expect(deck.get()).toMatchObject({ at: 54_001, live: true });
    expect(deck.event(0)).toBeUndefined();
    expect(texts(deck.get().view)?.slice(-2)).toEqual(["user: ask 6000", "assistant: 6000.0 6000.1 6000.2 6000.3 "]);
    expect(deck.get().view?.earlier).toBeGreaterThan(6_000);
    deck.seek(20_000);
    await world.settle();
    await world.settle();
    expect(texts(deck.get().view)?.slice(-2)).toEqual(texts(folded(all, 20_000))?.slice(-2));
  },
  slow,
);

test(
  "an offset behind a jump gets a keyframe of its own",
  async () => {
    const events = turns(6_000);
    events[3_500] = rewound(3_500, 10);
    const world = new World(events);
    const deck = await opened(world);
    deck.seek(3_900);
    await world.settle();
    await world.settle();
    expect(deck.get()).toMatchObject({ at: 3_900, seeking: false });
    expect(texts(deck.get().view)?.slice(0, 2)).toEqual(["user: ask 1", "assistant: 1.0 1.1 1.2 1.3 "]);
  },
  slow,
);

test("a session that cannot be read says why", async () => {
  const world = new World(turns(1));
  const options = world.options();
  options.api = { ...options.api!, session: () => Promise.reject(new Error("there is no such session")) };
  const deck = new Deck("s", undefined, options);
  deck.open();
  await world.settle();
  expect(String(deck.get().error)).toContain("no such session");
  expect(world.asked).not.toContain("follow 0");
});

test("a recording opens with all its events, does not follow, and is never live", async () => {
  const world = new World(turns(3));
  const o = world.options();
  const deck = new Deck("s", Number.POSITIVE_INFINITY, { ...o, finished: true });
  deck.open();
  await world.settle();
  expect(texts(deck.get().view)).toEqual(texts(folded(world.events, world.events.length)));
  expect(world.asked.filter((a) => a.startsWith("snapshot"))).toEqual([]);
  expect(deck.get()).toMatchObject({ at: world.events.length, live: false, seeking: false });
  deck.seek(5);
  await world.settle();
  expect(texts(deck.get().view)).toEqual(texts(folded(world.events, 5)));
  deck.goLive();
  await world.settle();
  expect(deck.get()).toMatchObject({ at: world.events.length, live: false });
});

test("a recording that ends in the middle of a run stops at its end, and plays from the start again", async () => {
  const events = turns(2).slice(0, -2);
  const world = new World(events);
  const deck = new Deck("s", Number.POSITIVE_INFINITY, { ...world.options(), finished: true });
  deck.open();
  await world.settle();
  expect(deck.get().view?.session.status).toBe("running");
  for (let n = 0; n < 2; n++) {
    deck.toggle();
    await world.pass(events.length * 100 + 200);
    await world.settle();
    expect(deck.get()).toMatchObject({ at: events.length, playing: false, live: false });
  }
});

test(
  "without an index, a long session has no positions to seek, but offsets",
  async () => {
    const world = new World(turns(6_000));
    const o = world.options();
    const api = { ...o.api!, replayIndex: () => Promise.reject(new Error("not now")) };
    const deck = new Deck("s", undefined, { ...o, api });
    deck.open();
    await world.settle();
    deck.seekPosition(1_000);
    await world.settle();
    expect(deck.get()).toMatchObject({ at: 54_001, live: true, seeking: false });
    deck.seek(3_000);
    await world.settle();
    await world.settle();
    expect(deck.get()).toMatchObject({ at: 3_000, live: false, seeking: false });
  },
  slow,
);

test(
  "in a long session, positions behind the index and at its gaps are exact",
  async () => {
    const events = turns(6_000).map((e) => ({ ...e, timestamp: time(e.offset * 100 + (e.offset > 27_000 ? 3e8 : 0)) }));
    const world = new World(events); // the gap is in a run, and longer than a day
    const deck = await opened(world);
    expect(deck.get()).toMatchObject({ position: 5_399_800, length: 5_399_800, axis: "time" });
    for (const at of [27_000, 27_001, 27_002, 40_000]) {
      deck.seek(at);
      await world.settle();
      await world.settle();
      expect(deck.get().position, `at ${at}`).toBe((at - 1) * 100 - (at > 27_001 ? 200 : 100));
    }
    deck.goLive();
    await world.settle();
    const last = { ...events[54_000]!, invocation: "new", offset: 54_001, type: "RUN_STARTED" };
    world.append(
      { ...last, timestamp: time(9e8) },
      { ...last, offset: 54_002, type: "CUSTOM", timestamp: time(9e8 + 500) },
    );
    world.draw();
    expect(deck.get()).toMatchObject({ at: 54_003, position: 5_400_300, length: 5_400_300 });
  },
  slow,
);
