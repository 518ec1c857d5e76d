import type { Language } from "./language";

/** Longer texts are not coloured. */
export const longest = 50_000;
/** So many pieces of a text have colours: with each the browser has more to do in every frame. */
export const mostTokens = 1500;
/** So long a text may take; some regular expressions never end. */
const patience = 10_000;
/** Texts whose pieces are kept: rows come and go while somebody scrolls. */
const kept = 60;

/** From, to and kind of each piece, one after the other. */
export type Tokens = Int32Array;

type Thread = Pick<Worker, "postMessage" | "terminate"> & {
  onmessage: ((e: MessageEvent) => void) | null;
  onerror: ((e: ErrorEvent) => void) | null;
};

interface Job {
  key: string;
  text: string;
  language: Language;
  done: (t: Tokens | undefined) => void;
  wanted: number;
}

/** Finds what is what in code, in another thread, one text after the other, each once. */
export class Reader {
  private make: (() => Thread) | undefined;
  private readonly known = new Map<string, Promise<Tokens | undefined>>();
  private readonly jobs = new Map<string, Job>();
  private thread: Thread | undefined;
  private now: Job | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private ids = 0;

  /** Without threads nothing is read. */
  use(make: () => Thread): void {
    this.make = make;
  }

  /** The pieces of a text; undefined if it cannot be read. Whoever has gone meanwhile says so. */
  read(text: string, language: Language, gone: AbortSignal): Promise<Tokens | undefined> {
    if (!this.make || text.length > longest || text.trim() === "") return Promise.resolve(undefined);
    const key = `${language} ${text}`;
    let found = this.known.get(key);
    if (found) this.known.delete(key); // used last
    found ??= new Promise((done) => this.jobs.set(key, { key, text, language, done, wanted: 0 }));
    this.known.set(key, found);
    for (const old of this.known.keys()) {
      if (this.known.size <= kept) break;
      if (!this.jobs.has(old)) this.known.delete(old);
    }
    this.want(key, gone);
    this.next();
    return found;
  }

  /** A text that nobody wants any more before it is its turn is not read. */
  private want(key: string, gone: AbortSignal): void {
    const job = this.jobs.get(key);
    if (!job) return;
    job.wanted++;
    gone.addEventListener("abort", () => {
      if (--job.wanted > 0 || !this.jobs.delete(key)) return;
      this.known.delete(key);
      job.done(undefined);
    });
  }

  private next(): void {
    const job = this.now ? undefined : this.jobs.values().next().value;
    if (!job) return;
    this.jobs.delete(job.key);
    this.now = job;
    const id = ++this.ids;
    try {
      this.thread ??= this.make?.();
    } catch {
      // the browser lets there be none
    }
    if (!this.thread) {
      this.end(undefined);
      return;
    }
    this.thread.onmessage = ({ data }) => data.id === id && this.end(data.tokens);
    this.thread.onerror = () => this.giveUp();
    this.timer = setTimeout(() => this.giveUp(), patience);
    this.thread.postMessage({ id, text: job.text, language: job.language });
  }

  private giveUp(): void {
    this.thread?.terminate();
    this.thread = undefined;
    this.end(undefined);
  }

  private end(tokens: Tokens | undefined): void {
    clearTimeout(this.timer);
    this.now?.done(tokens);
    this.now = undefined;
    this.next();
  }
}

export const reader = new Reader();
