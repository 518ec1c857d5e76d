import type { Connection, Login, SessionInfo } from "@tapedeck/client";
import { CopyButton } from "../conversation/copy-button";
import { isDeleted } from "./header";

/** Why a session takes no message from this page. */
export type Refusal = "deleted" | "closed" | "reader";

export function refusalOf(
  connection: Connection | undefined,
  session: Pick<SessionInfo, "closed">,
  viewer: Login | undefined,
): Refusal | undefined {
  if (connection && isDeleted(connection)) return "deleted";
  if (session.closed) return "closed";
  return viewer?.role === "reader" ? "reader" : undefined;
}

const reasons: Record<Refusal, string> = {
  deleted: "This session was deleted. The page shows what it has loaded.",
  closed: "This session is closed. It accepts no more events.",
  reader: "You can read this session, and not write in it.",
};

/** Stands for the field of a session that takes no message. What was typed meanwhile can be copied. */
export function NoField({ why, text }: { why: Refusal; text: string }) {
  return (
    <div className="border-t border-line bg-panel px-4 py-3 text-[13px] text-muted">
      <p>{reasons[why]}</p>
      {text.trim() && (
        <div className="mt-2 flex items-start gap-2">
          <label className="flex min-w-0 flex-1 flex-col gap-1">
            Your message was not sent:
            <textarea
              readOnly
              rows={Math.min(6, text.split("\n").length)}
              value={text}
              className="min-h-8 resize-none rounded-md border border-line bg-bg px-3 py-1.5 text-sm text-text"
            />
          </label>
          <CopyButton text={text} label="Copy the message" className="size-8" />
        </div>
      )}
    </div>
  );
}
