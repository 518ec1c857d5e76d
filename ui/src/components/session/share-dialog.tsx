import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { SessionToken } from "@tapedeck/client";
import { type ReactNode, useState } from "react";
import { api } from "@/client";
import { copyText } from "@/hooks/clipboard";
import { useViewer } from "@/hooks/viewer";
import { Button, Dialog, ErrorBox, field, Loading } from "../ui";

interface Props {
  id: string;
  /** The playhead; absent for live. */
  at?: number;
  head: number;
  onExport: () => void;
  onClose: () => void;
}

/** All ways to show a session to others. */
export function ShareDialog({ id, at, head, onExport, onClose }: Props) {
  const viewer = useViewer();
  const moment = at === undefined ? "" : `?at=${at}`;
  const page = `${location.origin}/s/${encodeURIComponent(id)}`;
  const open = !viewer?.subject;
  const owns = viewer?.role === "user" || viewer?.role === "admin";
  return (
    <Dialog title="Share" onClose={onClose} wide>
      <div className="flex flex-col gap-5 text-[13px]">
        <Part title={at === undefined ? "Link to this session" : "Link to this moment"}>
          <p className="text-muted">
            {open ? "For people who can reach this server." : "For people who log in here and may read the session."}{" "}
            {at === undefined ? "It follows the session live." : `It opens at event ${at}.`}
          </p>
          <Copied label="Link" text={page + moment} first />
        </Part>
        {owns && <Guests id={id} at={at} head={head} />}
        <Part title="Recording">
          <p className="text-muted">
            One file that plays in any browser, without this server. You choose what it shows first and what is left
            out, and see that before.
          </p>
          <div>
            <Button icon="export" onClick={onExport}>
              Export a recording…
            </Button>
          </div>
        </Part>
        <Part title="Embed">
          <p className="text-muted">
            In your own page, live, with <code className="font-mono">tapedeck-player.js</code> of the npm package
            @tapedeck/player. The server needs <code className="font-mono">--allow-origin</code> for that page.
            {!open && " The player sends no token: export the session as JSON, and name that file as its src."}
          </p>
          <Copied label="Embed code" text={playerCode(page, at)} />
          <p className="text-muted">
            Or the recording in a frame: put the file beside your page. Nothing else is loaded, and it needs no server.
          </p>
          <Copied label="Code of the frame" text={frameCode(id, at)} />
        </Part>
      </div>
    </Dialog>
  );
}

function playerCode(page: string, at?: number): string {
  const begin = at === undefined ? "" : ` poster="${at}" at="0"`;
  return `<script src="tapedeck-player.js"></script>\n<tapedeck-player src="${page}"${begin}></tapedeck-player>`;
}

/** The recording may run its own script in the frame, and can do nothing to the page around it. */
function frameCode(id: string, at?: number): string {
  const look = at === undefined ? "" : `#poster=${at}`;
  const file = encodeURIComponent(`${id}.html`);
  return `<iframe src="${file}${look}" title="A recorded session" sandbox="allow-scripts"\n  style="width: 100%; height: 600px; border: 0"></iframe>`;
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  );
}

/** A text with a button that copies it. */
function Copied({ label, text, first }: { label: string; text: string; first?: boolean }) {
  const [done, setDone] = useState("");
  const rows = text.split("\n").reduce((n, line) => n + Math.max(1, Math.ceil(line.length / 48)), 0); // long lines wrap
  return (
    <div className="flex flex-wrap items-start gap-2">
      <textarea
        readOnly
        rows={rows}
        aria-label={label}
        className={`${field} h-auto min-w-48 flex-1 resize-none py-1.5 [field-sizing:content] font-mono text-xs`}
        value={text}
        onFocus={(e) => e.target.select()}
      />
      <Button
        data-first={first || undefined}
        icon={done === "Copied" ? "check" : "link"}
        aria-label={`Copy: ${label}`}
        onClick={() =>
          copyText(text).then(
            () => setDone("Copied"),
            (err: Error) => setDone(err.message),
          )
        }
      >
        {done === "Copied" ? "Copied" : "Copy"}
      </Button>
      {done !== "" && (
        <p role="status" className={done === "Copied" ? "sr-only" : "w-full text-bad"}>
          {done}
        </p>
      )}
    </div>
  );
}

const dayMs = 86_400_000;

/** A day in the form of a date field, in local time. */
function dayOf(ms: number): string {
  const d = new Date(ms);
  return [d.getFullYear(), d.getMonth() + 1, d.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
}

/** Links that read this session without an account: made, listed and revoked. */
function Guests({ id, at, head }: { id: string; at?: number; head: number }) {
  const [name, setName] = useState("");
  const [until, setUntil] = useState(() => dayOf(Date.now() + 7 * dayMs));
  const [frozen, setFrozen] = useState(at !== undefined);
  const before = at ?? head;
  const queries = useQueryClient();
  const key = ["tokens", id];
  const list = useQuery({ queryKey: key, queryFn: ({ signal }) => api.tokens(id, { signal }), retry: false });
  const renew = () => void queries.invalidateQueries({ queryKey: key });
  const make = useMutation({
    mutationFn: async () => {
      const made = await api.issueToken(id, {
        role: "reader",
        name: name.trim() || "Link",
        expires: new Date(`${until}T23:59:59`).toISOString(),
        ...(frozen ? { before } : {}),
      });
      const next = `/s/${encodeURIComponent(id)}`;
      return { id: made.id, link: `${location.origin}/login?next=${encodeURIComponent(next)}#token=${made.token}` };
    },
    onSuccess: renew,
  });
  const revoke = useMutation({
    mutationFn: (token: string) => api.revokeToken(id, token),
    onSuccess: (_, token) => token === make.data?.id && make.reset(),
    onSettled: renew,
  });
  const failed = [make, revoke].find((m) => m.isError);
  return (
    <Part title="Read-only link">
      <p className="text-muted">
        Everybody who has the link can read this session until the date, without an account. They see no other session.
      </p>
      <form
        className="flex flex-wrap items-end gap-x-3 gap-y-2"
        onSubmit={(e) => {
          e.preventDefault();
          make.mutate();
        }}
      >
        <label className="flex flex-col gap-1">
          <span className="text-muted">For whom</span>
          <input
            className={`${field} w-44`}
            value={name}
            maxLength={100}
            placeholder="Link"
            onChange={(e) => setName(e.target.value)}
          />
        </label>
        <label className="flex flex-col gap-1">
          <span className="text-muted">Until the end of</span>
          <input
            type="date"
            required
            className={field}
            value={until}
            min={dayOf(Date.now())}
            max={dayOf(Date.now() + 364 * dayMs)}
            onChange={(e) => setUntil(e.target.value)}
          />
        </label>
        <label className="flex min-h-8 items-center gap-2">
          <input type="checkbox" checked={frozen} onChange={(e) => setFrozen(e.target.checked)} />
          Only the events up to {at === undefined ? "now" : "this moment"} (#{before})
        </label>
        <Button type="submit" icon="link" busy={make.isPending}>
          Create link
        </Button>
      </form>
      {failed && <ErrorBox error={failed.error} onClose={() => failed.reset()} />}
      {make.data && (
        <div className="flex flex-col gap-1">
          <Copied label="Read-only link" text={make.data.link} />
          <p className="text-muted">Copy it now: it is not shown again.</p>
        </div>
      )}
      {list.isPending && <Loading what="the links" />}
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && list.data.length > 0 && (
        <ul aria-label="Links" className="divide-y divide-line rounded-md border border-line">
          {list.data.map((t) => (
            <LinkRow key={t.id} token={t} busy={revoke.isPending} onRevoke={() => revoke.mutate(t.id)} />
          ))}
        </ul>
      )}
    </Part>
  );
}

function LinkRow({ token: t, busy, onRevoke }: { token: SessionToken; busy: boolean; onRevoke: () => void }) {
  const until = new Date(t.expires).toLocaleDateString(undefined, { dateStyle: "medium" });
  return (
    <li className="flex items-center gap-3 px-3 py-1.5">
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">{t.name}</span>
        <span className="block text-xs text-muted">
          {t.role === "reader" ? "reads" : t.role} until {until}
          {t.before ? `, only the events before #${t.before}` : ""}
        </span>
      </span>
      <Button look="danger" disabled={busy} aria-label={`Revoke ${t.name}`} onClick={onRevoke}>
        Revoke
      </Button>
    </li>
  );
}
