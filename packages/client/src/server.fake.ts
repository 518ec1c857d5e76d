// A server and a clock in memory, for tests of requests and streams.
import type { Environment } from "./environment.ts";
import type { ClientOptions } from "./http.ts";

/** One request, and the stream that answers it. */
export class FakeConnection {
  readonly url: URL;
  readonly headers: Headers;
  readonly method: string;
  readonly body: unknown;
  readonly answer: Promise<Response>;
  aborted = false;
  private give!: (r: Response) => void;
  private fail!: (e: unknown) => void;
  private out!: ReadableStreamDefaultController<Uint8Array>;

  constructor(url: string, init: RequestInit = {}) {
    this.url = new URL(url);
    this.headers = new Headers(init.headers);
    this.method = init.method ?? "GET";
    this.body = init.body;
    this.answer = new Promise((give, fail) => {
      [this.give, this.fail] = [give, fail];
    });
    init.signal?.addEventListener("abort", () => {
      this.aborted = true;
      this.fail(init.signal?.reason);
    });
  }

  /** Answers with a stream of events. */
  open(headers: Record<string, string> = {}): this {
    const body = new ReadableStream<Uint8Array>({
      start: (out) => {
        this.out = out;
      },
      cancel: () => {
        this.aborted = true;
      },
    });
    this.give(new Response(body, { headers: { "Content-Type": "text/event-stream", ...headers } }));
    return this;
  }

  reply(status: number, body: unknown = null, headers: Record<string, string> = {}): void {
    const json = typeof body === "string" || body === null ? (body as string | null) : JSON.stringify(body);
    const type = typeof body === "string" ? "text/html" : "application/json";
    this.give(
      new Response(json, { status, headers: { ...(json === null ? {} : { "Content-Type": type }), ...headers } }),
    );
  }

  refuse(status: number, kind: string, headers: Record<string, string> = {}): void {
    this.reply(status, { error: { kind, message: `it is ${kind}` } }, headers);
  }

  /** No connection. */
  break(): void {
    this.fail(new TypeError("fetch failed"));
  }

  write(...text: (string | Uint8Array)[]): this {
    for (const t of text) this.out.enqueue(typeof t === "string" ? new TextEncoder().encode(t) : t);
    return this;
  }

  /** What ids have after the offset. */
  life = "";

  event(...events: { offset: number }[]): this {
    return this.write(...events.map((e) => `id: ${e.offset}${this.life}\ndata: ${JSON.stringify(e)}\n\n`));
  }

  frame(type: string, data: unknown, id?: number): this {
    return this.write(`${id === undefined ? "" : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** The stream ends, without a frame that says so. */
  cut(): void {
    this.out.close();
  }

  /** The connection is lost. */
  lose(): void {
    this.out.error(new TypeError("terminated"));
  }
}

interface Timer {
  f: () => void;
  at: number;
  ms: number;
}

export class FakeServer {
  readonly connections: FakeConnection[] = [];
  clock = 0;
  private timers = new Map<number, Timer>();
  private timerCount = 0;
  private wakers = new Set<() => void>();

  options(o: Partial<ClientOptions> = {}): ClientOptions {
    return { url: "http://server/", fetch: this.fetch, ...o };
  }

  private fetch = (url: unknown, init?: RequestInit): Promise<Response> => {
    const c = new FakeConnection(String(url), init);
    this.connections.push(c);
    return c.answer;
  };

  environment: Environment = {
    setTimeout: (f, ms) => {
      this.timers.set(++this.timerCount, { f, ms, at: this.clock + ms });
      return this.timerCount;
    },
    clearTimeout: (n) => this.timers.delete(n as number),
    now: () => this.clock,
    random: () => 1, // the longest wait
    onWake: (f) => {
      this.wakers.add(f);
      return () => this.wakers.delete(f);
    },
    place: async () => ({ leave: () => undefined }),
  };

  get newest(): FakeConnection {
    const c = this.connections.at(-1);
    if (!c) throw new Error("there is no connection");
    return c;
  }

  get listening(): number {
    return this.wakers.size;
  }

  /** Lets everything happen that waits for no timer. */
  async settle(): Promise<void> {
    for (let i = 0; i < 3; i++) await new Promise((r) => setImmediate(r));
  }

  /** Advances the clock; timers that are due run. */
  async pass(ms: number): Promise<void> {
    const end = this.clock + ms;
    for (;;) {
      await this.settle();
      const due = [...this.timers].filter(([, t]) => t.at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.timers.delete(due[0]);
      this.clock = due[1].at;
      due[1].f();
    }
    this.clock = end;
    await this.settle();
  }

  async wake(): Promise<void> {
    for (const f of this.wakers) f();
    await this.settle();
  }
}
