import { type Client, TapedeckError } from "@tapedeck/client";
import { pathOf, versionHeader } from "../transport.ts";
import { streamHeaders } from "./run.ts";

/** Says whether the sender of a request may use a chat. */
export type Authorize = (request: Request, chat: string) => boolean | Promise<boolean>;

type Route = (request: Request) => Promise<Response>;

export interface Routes {
  GET: Route;
  POST: Route;
}

const chatPath = /\/([^/]+)\/(stream|messages|stop)$/;
const eventsPath = /\/api\/v1\/sessions\/([^/]+)\/stream$/;
/** What a page may ask of the stream of events: not who is in the session. */
const asked = ["fromOffset", "lastEventId", "until", "thread", "type", "message", "from", "attempts"];

/** The requests of a chat besides those that send messages, as routes of a program that holds the token. */
export function routesOf(client: Client, authorize: Authorize): Routes {
  const route = async (request: Request): Promise<Response> => {
    try {
      const { pathname, searchParams } = new URL(request.url);
      const target = targetOf(request.method, pathname);
      if (!target) throw new TapedeckError("not_found", "there is nothing at this address", { status: 404 });
      if (!(await authorize(request, target.chat)))
        throw new TapedeckError("forbidden", "this chat is not yours", { status: 403 });
      const query = new URLSearchParams([...searchParams].filter(([name]) => asked.includes(name)));
      return pass(await client.request(`${target.path}?${query}`, { ...forwarded(request), method: request.method }));
    } catch (error) {
      return refusal(error);
    }
  };
  return { GET: route, POST: route };
}

function targetOf(method: string, path: string): { chat: string; path: string } | undefined {
  const events = method === "GET" ? eventsPath.exec(path) : null;
  if (events) {
    const chat = decoded(events[1]!);
    return { chat, path: `/api/v1/sessions${pathOf(chat)}/stream` };
  }
  const [, id, what] = chatPath.exec(path) ?? [];
  if (id === undefined || (what === "stop") !== (method === "POST")) return undefined;
  const chat = decoded(id);
  return { chat, path: `/aisdk/default${pathOf(chat)}/${what}` };
}

function decoded(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch (cause) {
    throw new TapedeckError("invalid", "the id of the chat in the address is not valid", { status: 400, cause });
  }
}

function forwarded(request: Request) {
  const headers: Record<string, string> = { Accept: "text/event-stream, application/json" };
  const version = request.headers.get(versionHeader);
  if (version !== null) headers[versionHeader] = version;
  return { headers, signal: request.signal };
}

/** An answer of the server as an answer of this program. Its other headers are not for a page. */
function pass(answer: Response): Response {
  const headers = new Headers({ "Cache-Control": "no-store" });
  for (const name of ["Content-Type", "Tapedeck-Api", "Tapedeck-Begun"]) {
    const value = answer.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const stream = headers.get("Content-Type")?.startsWith("text/event-stream");
  if (stream) for (const [name, value] of Object.entries(streamHeaders)) headers.set(name, value);
  return new Response(answer.status === 204 ? null : answer.body, { status: answer.status, headers });
}

/** An error as an answer, in the form of the HTTP API. */
export function refusal(error: unknown): Response {
  if (!(error instanceof TapedeckError)) throw error;
  const { kind, message, hint, status, retryAfterMs } = error;
  const headers = new Headers({ "Cache-Control": "no-store" });
  if (retryAfterMs !== undefined) headers.set("Retry-After", String(Math.ceil(retryAfterMs / 1000)));
  return Response.json({ error: { kind, message, hint } }, { status: status >= 400 ? status : 502, headers });
}
