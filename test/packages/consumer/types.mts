// What a program may rely on: the compiler checks it.
import { type Connection, createClient, type SessionEvent, TapedeckError } from "@tapedeck/client";
import { Conversation } from "@tapedeck/client/fold";
import { createPlayer } from "@tapedeck/client/player";

const client = createClient({ url: new URL("http://h"), headers: async () => ({ Authorization: "Bearer x" }) });
const session = client.session("s");

/** The type of an event decides what its data has. */
export function text(e: SessionEvent): string {
  switch (e.type) {
    case "TEXT_MESSAGE_CONTENT":
      return e.data.delta;
    case "TOOL_CALL_RESULT":
      return e.data.toolCallId;
    case "permission.requested":
      return e.data.options.map((o) => o.id).join();
    default:
      return "";
  }
}

export async function all(): Promise<number> {
  let n = 0;
  const onStatus = (c: Connection) => c.error?.hint;
  for await (const e of session.follow({ until: "terminal", onStatus })) n += e.offset;
  for await (const s of client.sessions({ status: "running" })) n += s.head;
  const { session: other, invocation } = await client.run("Say hello");
  await other.cancel(invocation);
  await session.append({ type: "acme.note", data: { n } }, { ifMatch: 7 });
  const player = createPlayer(session, { at: 3 });
  player.subscribe(() => player.get().view?.messages.length);
  const c = new Conversation();
  for await (const e of session.events()) c.apply(e);
  return c.snapshot().messages.length;
}

export const shown = (e: unknown): string => (e instanceof TapedeckError ? `${e.kind}: ${e.message}` : "");

// @ts-expect-error a misspelt option
client.sessions({ statu: "running" });
// @ts-expect-error there is no such verb
session.rewindTo(3);
