import { type Api, createApi, type EventsQuery, type SearchQuery, type SessionsQuery } from "./api.ts";
import { Follower, type Listener } from "./follow.ts";
import { type Call, type CallOptions, type ClientOptions, Http, query, sessionPath } from "./http.ts";
import { asTask, Session } from "./session.ts";
import { type UploadOptions, upload } from "./upload.ts";
import type * as wire from "./wire.ts";

/** A server and its sessions. It holds no state and no connection. */
export class Client {
  /** Every end point of docs/http.md as one function. */
  readonly api: Api;
  private readonly http: Http;

  constructor(o: ClientOptions) {
    this.http = new Http(o);
    this.api = createApi(this.http);
  }

  /** The session of an id. Nothing is sent. */
  session(id: string): Session {
    return new Session(id, this.api, this.http);
  }

  async create(s?: wire.NewSession, o?: CallOptions): Promise<Session> {
    const { id } = await this.api.create(s, o);
    return this.session(id);
  }

  /** Creates a session and starts a task in it. */
  async run(t: string | wire.Task, o?: CallOptions): Promise<{ session: Session; invocation: string; offset: number }> {
    const { session_id, invocation_id, offset } = await this.api.run(asTask(t), o);
    return { session: this.session(session_id), invocation: invocation_id, offset };
  }

  /** The sessions, newest first. `limit` is the size of the pages. */
  async *sessions(q: SessionsQuery = {}, o?: CallOptions): AsyncGenerator<wire.SessionRow, void, void> {
    for (let { cursor } = q; ; ) {
      const page = await this.api.sessions({ ...q, cursor }, o);
      yield* page.sessions;
      cursor = page.next;
      if (!cursor) return;
    }
  }

  /** The hits of a search, best match first. `limit` is the size of the pages. */
  async *search(q: string | SearchQuery, o?: CallOptions): AsyncGenerator<wire.SearchHit, void, void> {
    const asked = typeof q === "string" ? { q } : q;
    for (let { cursor } = asked; ; ) {
      const page = await this.api.search({ ...asked, cursor }, o);
      yield* page.hits;
      cursor = page.next;
      if (!cursor) return;
    }
  }

  /** Follows a session for a listener. `session(id).follow()` gives the same as an iterator. */
  follower(id: string, listener: Listener): Follower {
    return new Follower(this.http, id, listener);
  }

  /** A request to any path of the server, such as one of another protocol, with the headers and errors of this client. */
  request(path: string, c?: Call): Promise<Response> {
    return this.http.send(path, { ...c, outside: true });
  }

  /** The address of a page of events, for other programs. */
  eventsUrl(id: string, q: EventsQuery = {}): string {
    return this.http.base + sessionPath(id, "events") + query({ ...q });
  }

  /** Shows what an import would create. Nothing is stored. */
  previewImport(file: Blob, o?: UploadOptions): Promise<wire.ImportPreview> {
    return upload(this.http, file, true, o);
  }

  /** Creates sessions from recorded conversations or exports. */
  importFile(file: Blob, o?: UploadOptions): Promise<wire.Imported> {
    return upload(this.http, file, false, o);
  }
}

/** A client of the server at `url`. Nothing is sent. */
export function createClient(o: ClientOptions): Client {
  return new Client(o);
}
