import type { Api } from "./api.ts";
import { type Environment, surroundings } from "./environment.ts";
import { TapedeckError } from "./errors.ts";
import type * as wire from "./wire.ts";

export interface ProducerOptions {
  /** Counts the starts of the producer, from 0: a program that starts again takes the next one. */
  epoch?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Called before each wait, with what failed. */
  onRetry?: ((attempt: number, error: TapedeckError) => void) | undefined;
  environment?: Environment | undefined;
}

/**
 * Numbers its appends and repeats each until it has an answer, so that each is stored
 * once, also through lost connections and restarts of the server. Appends are sent one
 * after the other, in the order of the calls.
 */
export class EventProducer {
  readonly id: string;
  readonly epoch: number;
  private readonly api: Pick<Api, "append">;
  private readonly session: string;
  private readonly o: ProducerOptions;
  private readonly env: Environment;
  private seq = 0;
  private last: Promise<unknown> = Promise.resolve();

  constructor(api: Pick<Api, "append">, session: string, id: string, o: ProducerOptions = {}) {
    [this.api, this.session, this.id, this.o] = [api, session, id, o];
    this.epoch = o.epoch ?? 0;
    this.env = o.environment ?? surroundings;
  }

  append(events: wire.NewEvent | wire.NewEvent[]): Promise<wire.Appended> {
    const done = this.last.then(() => this.send(events));
    this.last = done.catch(() => undefined); // a refused append stores nothing, and its number is used again
    return done;
  }

  private async send(events: wire.NewEvent | wire.NewEvent[]): Promise<wire.Appended> {
    const producer = { id: this.id, epoch: this.epoch, seq: this.seq };
    for (let attempt = 1; ; attempt++) {
      try {
        const done = await this.api.append(this.session, events, { producer, signal: this.o.signal });
        this.seq++;
        return done;
      } catch (error) {
        if (!(error instanceof TapedeckError) || !error.retryable) throw error;
        this.o.onRetry?.(attempt, error);
        await this.wait(Math.max(error.retryAfterMs ?? 0, Math.min(250 * 2 ** Math.min(attempt - 1, 10), 10_000)));
      }
    }
  }

  private wait(ms: number): Promise<void> {
    const { signal } = this.o;
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.env.clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = this.env.setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, ms);
      signal?.addEventListener("abort", stop);
      if (signal?.aborted) stop();
    });
  }
}
