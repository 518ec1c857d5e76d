// Over HTTP/1.1 a browser opens six connections to a server, for all tabs together. With six open
// streams, every further request would wait until one of them ends. So the tabs have four places
// for streams, which the browser itself gives away as locks: a tab that closes or crashes leaves
// its places. A stream without a place is opened, read and closed again, every two seconds.

/** What a stream is: the events of a session, or the answer of an agent to a page. */
export type StreamKind = "follow" | "answer";

/** A stream that has it may stay open until it leaves. */
export interface Place {
  leave: () => void;
}

/** Two connections of the six stay free for requests. */
const places: Record<StreamKind, number> = { follow: 2, answer: 2 };

/** The wait before a stream without a place is opened again, in milliseconds. */
export function visitPause(): number {
  return hidden() ? 10_000 : 2000;
}

/** The reason for which a stream without a place is closed. */
export const visited = new Error("the stream has no place to stay open");

/**
 * Asks for a place at a server; undefined if none is free. `onAsked` is called when a page that its
 * user sees asks for this place, and this page is hidden.
 *
 * Every stream has a place outside of pages, over HTTP/2 and later, where one connection has all
 * streams, and in pages to which the browser gives no locks: those of http: at another host than
 * localhost.
 */
export async function place(address: string, kind: StreamKind, onAsked: () => void): Promise<Place | undefined> {
  const { origin } = new URL(address, globalThis.location?.href);
  const locks = globalThis.document && globalThis.navigator?.locks;
  if (!locks || !isScarce(origin)) return { leave: () => undefined };
  for (let n = 0; n < places[kind]; n++) {
    const release = await lock(locks, `tapedeck ${kind} ${n} ${origin}`);
    if (release) return { leave: both(release, whenAsked(origin, kind, onAsked)) };
  }
  if (!hidden()) pages().postMessage({ origin, kind });
  return undefined;
}

const both = (f: () => void, g: () => void) => () => {
  f();
  g();
};

const hidden = () => globalThis.document?.visibilityState === "hidden";

/** Whether the browser speaks HTTP/1.1 with a server, or does not say what. */
function isScarce(origin: string): boolean {
  const seen = ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type));
  const last = (seen as PerformanceResourceTiming[])
    .reverse()
    .find((e) => e.nextHopProtocol && e.name.startsWith(`${origin}/`));
  return !last || last.nextHopProtocol.startsWith("http/1");
}

/** Returns how to release a lock; undefined if another tab or stream has it. */
function lock(locks: LockManager, name: string): Promise<(() => void) | undefined> {
  return new Promise((resolve) => {
    const held = (l: Lock | null) => (l ? new Promise<void>((release) => resolve(release)) : resolve(undefined));
    // A frame with an opaque origin gets no locks.
    locks.request(name, { ifAvailable: true }, held).catch(() => resolve(() => undefined));
  });
}

let channel: BroadcastChannel | undefined;

/** Where pages ask each other for places. */
function pages(): BroadcastChannel {
  channel ??= new BroadcastChannel("tapedeck places");
  return channel;
}

function whenAsked(origin: string, kind: StreamKind, f: () => void): () => void {
  const from = pages();
  const asked = ({ data }: MessageEvent<{ origin: string; kind: string }>) => {
    if (data.origin === origin && data.kind === kind && hidden()) f();
  };
  from.addEventListener("message", asked);
  return () => from.removeEventListener("message", asked);
}
