import { expect, test } from "vitest";
import { Deck } from "./deck.ts";
import { time, turns, World } from "./fake.ts";

async function opened(world: World): Promise<Deck> {
  const deck = new Deck("s", undefined, world.options());
  deck.open();
  await world.settle();
  await world.settle();
  return deck;
}

test("what happens to the session itself takes no time, live and played", async () => {
  const all = turns(2);
  const world = new World(all);
  const deck = await opened(world);
  const admin = (offset: number, type: string, at: number) =>
    ({ offset, type, channel: "session", timestamp: time(at), data: {} }) as const;
  world.append(admin(19, "bookmark.added", 9e9), admin(20, "session.imported", -9e12));
  world.draw();
  expect(deck.get()).toMatchObject({ at: 21, position: 1700, length: 1700, live: true });
  deck.playFrom(18);
  world.draw();
  expect(deck.get()).toMatchObject({ at: 18, playing: true, live: false });
  await world.pass(150);
  expect(deck.get()).toMatchObject({ at: 21, playing: false, position: 1700 });
});

test("events without times are sought and played one by one", async () => {
  const events = turns(3).map((e) => ({ ...e, timestamp: time(0) }));
  const world = new World(events);
  const deck = await opened(world);
  expect(deck.get()).toMatchObject({ axis: "events", position: 28, length: 28 });
  deck.seekPosition(14.4);
  await world.settle();
  expect(deck.get()).toMatchObject({ at: 14, position: 14 });
  deck.toggle();
  world.draw();
  await world.pass(1010);
  expect(deck.get()).toMatchObject({ at: 19, playing: true });
  deck.setSpeed(64);
  await world.pass(100);
  expect(deck.get()).toMatchObject({ at: 28, position: 28, playing: false });
});

test("a live session counts events until its first second is over", async () => {
  const world = new World(turns(1).slice(0, 4));
  const deck = await opened(world);
  expect(deck.get()).toMatchObject({ axis: "events", position: 4, length: 4 });
  const e = turns(1)[4]!;
  world.append({ ...e, timestamp: time(1600) });
  world.draw();
  expect(deck.get()).toMatchObject({ axis: "time", position: 1500, length: 1500 });
});

test("a session whose time stands still after a run goes on when the next one begins", async () => {
  const [first, second] = [turns(1), turns(2).slice(10)];
  const world = new World(first);
  const deck = await opened(world);
  expect(deck.get()).toMatchObject({ axis: "events", length: 10 });
  world.append(...second.map((e) => ({ ...e, timestamp: time(86_400_000 + e.offset * 100) })));
  world.draw();
  expect(deck.get()).toMatchObject({ live: true, axis: "time", position: 1600, length: 1600 });
});
