import type { Language } from "./language";

/** Longer texts are not highlighted. */
export const maxLength = 50_000;
/** The limit of highlighted tokens in a text: each one costs the browser time in every frame. */
export const maxTokens = 1500;
/** The time limit for one text; some regular expressions never end. */
const timeoutMs = 10_000;
/** How many texts stay in the cache: rows appear and disappear while the user scrolls. */
const maxKept = 60;

/** Three numbers for each token: from, to and kind. */
export type Tokens = Int32Array;

type CodeWorker = Pick<Worker, "postMessage" | "terminate"> & {
  onmessage: ((e: MessageEvent) => void) | null;
  onerror: ((e: ErrorEvent) => void) | null;
};

interface Job {
  key: string;
  text: string;
  language: Language;
  done: (t: Tokens | undefined) => void;
  callers: number;
}

/** Tokenizes code in a worker: one text at a time, each text once. */
export class Tokenizer {
  private make: (() => CodeWorker) | undefined;
  private readonly cache = new Map<string, Promise<Tokens | undefined>>();
  private readonly jobs = new Map<string, Job>();
  private worker: CodeWorker | undefined;
  private current: Job | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private ids = 0;

  /** Sets how to start a worker. Without one, no text is tokenized. */
  setWorkerFactory(make: () => CodeWorker): void {
    this.make = make;
  }

  /** The tokens of a text; undefined if it cannot be tokenized. A caller that no longer needs them aborts `signal`. */
  tokenize(text: string, language: Language, signal: AbortSignal): Promise<Tokens | undefined> {
    if (!this.make || text.length > maxLength || text.trim() === "") return Promise.resolve(undefined);
    const key = `${language} ${text}`;
    let found = this.cache.get(key);
    if (found) this.cache.delete(key); // move it to the end: last used
    found ??= new Promise((done) => this.jobs.set(key, { key, text, language, done, callers: 0 }));
    this.cache.set(key, found);
    for (const old of this.cache.keys()) {
      if (this.cache.size <= maxKept) break;
      if (!this.jobs.has(old)) this.cache.delete(old);
    }
    this.addCaller(key, signal);
    this.next();
    return found;
  }

  /** Drops a waiting job when all its callers have aborted. */
  private addCaller(key: string, signal: AbortSignal): void {
    const job = this.jobs.get(key);
    if (!job) return;
    job.callers++;
    signal.addEventListener("abort", () => {
      if (--job.callers > 0 || !this.jobs.delete(key)) return;
      this.cache.delete(key);
      job.done(undefined);
    });
  }

  private next(): void {
    const job = this.current ? undefined : this.jobs.values().next().value;
    if (!job) return;
    this.jobs.delete(job.key);
    this.current = job;
    const id = ++this.ids;
    try {
      this.worker ??= this.make?.();
    } catch {
      // the browser does not allow workers
    }
    if (!this.worker) {
      this.end(undefined);
      return;
    }
    this.worker.onmessage = ({ data }) => data.id === id && this.end(data.tokens);
    this.worker.onerror = () => this.giveUp();
    this.timer = setTimeout(() => this.giveUp(), timeoutMs);
    this.worker.postMessage({ id, text: job.text, language: job.language });
  }

  private giveUp(): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.end(undefined);
  }

  private end(tokens: Tokens | undefined): void {
    clearTimeout(this.timer);
    this.current?.done(tokens);
    this.current = undefined;
    this.next();
  }
}

export const tokenizer = new Tokenizer();
