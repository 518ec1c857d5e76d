import { hasOpenRun, type SessionEntry } from "@tapedeck/client";
import { useState } from "react";
import { api } from "@/client";
import { deleteSoon } from "@/hooks/deleting";
import { archived, changeOfTags, has, starred, tagsIn, tagsOf } from "@/hooks/labels";
import { announce } from "@/hooks/notices";
import { setLabel, useChange } from "@/hooks/session-verbs";
import { plural } from "./format";
import type { MenuItem } from "./menu";
import { Button, Dialog, field } from "./ui";

type Managed = Pick<SessionEntry, "id" | "created_at" | "title" | "labels" | "closed" | "runs" | "status">;
type Asking = { kind: "rename" | "tags"; session: Managed } | { kind: "close"; sessions: Managed[] };

export const nameOf = (s: Managed) => s.title || "Untitled session";

/** What people do with sessions as a whole: with one, from its menu, and with several at once. */
export function useManage(onDeleted?: () => void) {
  const [asking, ask] = useState<Asking>();
  const change = useChange();
  const what = (list: Managed[]) =>
    list.length === 1 && list[0] ? `“${nameOf(list[0])}”` : plural(list.length, "session");
  const ids = (list: Managed[]) => list.map((s) => s.id);

  const verbs = {
    star: (list: Managed[], on: boolean) =>
      void change(ids(list), setLabel(starred, on), { text: `${what(list)} ${on ? "starred" : "no longer starred"}` }),
    archive: (list: Managed[], on: boolean) => {
      const back = () =>
        void change(ids(list), setLabel(archived, !on), { text: `${what(list)} ${on ? "listed again" : "archived"}` });
      void change(ids(list), setLabel(archived, on), {
        text: `${what(list)} ${on ? "archived" : "listed again"}`,
        action: { label: "Undo", run: back },
      });
    },
    close: (list: Managed[]) => ask({ kind: "close", sessions: list }),
    remove: (list: Managed[]) => {
      deleteSoon(list, what(list));
      onDeleted?.();
    },
  };
  const running = (s: Managed) => hasOpenRun(s.status) || (s.runs?.length ?? 0) > 0;
  const itemsOf = (s: Managed): MenuItem[] => [
    { label: "Rename…", icon: "edit", onChoose: () => ask({ kind: "rename", session: s }), ...closedReason(s) },
    {
      label: has(s, starred) ? "Remove the star" : "Star",
      icon: has(s, starred) ? "starred" : "star",
      onChoose: () => verbs.star([s], !has(s, starred)),
      ...closedReason(s),
    },
    { label: "Tags…", icon: "tag", onChoose: () => ask({ kind: "tags", session: s }), ...closedReason(s) },
    {
      label: has(s, archived) ? "Take out of the archive" : "Archive",
      icon: "archive",
      onChoose: () => verbs.archive([s], !has(s, archived)),
      ...closedReason(s),
    },
    {
      label: "Close…",
      icon: "lock",
      onChoose: () => verbs.close([s]),
      ...(s.closed
        ? { disabledReason: "It is closed already" }
        : running(s)
          ? { disabledReason: "A run is open: stop it first" }
          : {}),
    },
    { label: "Delete", icon: "clear", danger: true, onChoose: () => verbs.remove([s]) },
  ];

  const done = () => ask(undefined);
  const dialogs = asking && (
    <>
      {asking.kind === "rename" && (
        <TextDialog
          title="Rename the session"
          label="Title"
          value={asking.session.title ?? ""}
          button="Rename"
          onClose={done}
          onSubmit={(title) => {
            done();
            void change([asking.session.id], (id) => api.rename(id, title.trim()), { text: "Renamed" });
          }}
        />
      )}
      {asking.kind === "tags" && (
        <TextDialog
          title="Tags"
          label="Tags, with spaces between them"
          value={tagsOf(asking.session).join(" ")}
          button="Save"
          onClose={done}
          onSubmit={(text) => {
            done();
            const changes = changeOfTags(tagsOf(asking.session), tagsIn(text));
            if (Object.keys(changes).length === 0) announce({ text: "The tags are the same" });
            else void change([asking.session.id], (id) => api.label(id, changes), { text: "Tags saved" });
          }}
        />
      )}
      {asking.kind === "close" && (
        <CloseDialog
          what={what(asking.sessions)}
          onClose={done}
          onConfirm={() => {
            done();
            const list = ids(asking.sessions);
            void change(list, (id) => api.close(id), { text: `${what(asking.sessions)} closed` });
          }}
        />
      )}
    </>
  );
  return { ...verbs, itemsOf, dialogs };
}

/** Labels and titles are events, and a closed session takes none. */
const closedReason = (s: Managed) => (s.closed ? { disabledReason: "The session is closed" } : {});

interface TextDialogProps {
  title: string;
  label: string;
  value: string;
  button: string;
  onClose: () => void;
  onSubmit: (text: string) => void;
}

function TextDialog({ title, label, value, button, onClose, onSubmit }: TextDialogProps) {
  const [text, setText] = useState(value);
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="flex flex-col gap-3 text-[13px]"
        onSubmit={(e) => {
          e.preventDefault();
          onSubmit(text);
        }}
      >
        <label className="flex flex-col gap-1">
          <span className="text-muted">{label}</span>
          <input
            className={field}
            value={text}
            maxLength={200}
            onChange={(e) => setText(e.target.value)}
            onFocus={(e) => e.target.select()}
          />
        </label>
        <div className="flex justify-end gap-2">
          <Button look="ghost" onClick={onClose}>
            Cancel
          </Button>
          <Button look="primary" type="submit">
            {button}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function CloseDialog({ what, onClose, onConfirm }: { what: string; onClose: () => void; onConfirm: () => void }) {
  return (
    <Dialog title="Close?" onClose={onClose}>
      <div className="flex flex-col gap-3 text-[13px]">
        <p>
          {what} will accept no more messages or other events. It stays readable, and can be forked. A session cannot be
          opened again.
        </p>
        <div className="flex justify-end gap-2">
          <Button data-first look="ghost" onClick={onClose}>
            Cancel
          </Button>
          <Button look="danger" icon="lock" onClick={onConfirm}>
            Close for good
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
