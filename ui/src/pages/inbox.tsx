import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { InboxQuestion, JsonObject, Permission } from "@tapedeck/client";
import { useEffect, useRef, useState } from "react";
import { api } from "@/client";
import { visible } from "@/components/conversation/action";
import { Ask } from "@/components/conversation/ask";
import { ago } from "@/components/format";
import { Button, ErrorBox, Kbd, Loading, Notice } from "@/components/ui";
import { switchNotifying, useNotifying } from "@/hooks/attention";
import { inboxKey, keyOf, merged, useInbox } from "@/hooks/inbox";
import { useKeys } from "@/hooks/keys";
import { useNow } from "@/hooks/tick";

/** The questions of all sessions that wait for people. A question that was answered stays until the page is left. */
export function InboxPage() {
  const inbox = useInbox();
  const navigate = useNavigate();
  const [shown, setShown] = useState<readonly InboxQuestion[]>([]);
  const list = useRef<HTMLUListElement>(null);
  const now = useNow(30_000);
  const { data } = inbox;

  useEffect(() => {
    document.title = "Inbox · Tapedeck";
  }, []);
  useEffect(() => {
    if (data) setShown((old) => merged(old, data.questions));
  }, [data]);

  const cards = () => [...(list.current?.querySelectorAll<HTMLElement>("[data-ask]") ?? [])];
  const move = (by: number) => {
    const all = cards();
    const i = all.findIndex((c) => c.contains(document.activeElement));
    const to = all[i < 0 ? 0 : Math.max(0, Math.min(all.length - 1, i + by))];
    to?.focus();
    to?.scrollIntoView({ block: "nearest" });
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    o: () => {
      const item = document.activeElement?.closest<HTMLElement>("[data-session]");
      const q = shown.find((s) => keyOf(s) === item?.dataset.session);
      if (!q) return false;
      void navigate({ to: "/s/$id", params: { id: q.session.id }, search: { ask: q.question.offset } });
    },
  });

  const waiting = new Set(data?.questions.map(keyOf));
  return (
    <div className="mx-auto flex max-w-3xl flex-col gap-3 px-4 py-4">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <div className="min-w-0 flex-1">
          <h1 className="text-lg font-semibold">Inbox</h1>
          <p role="status" className="text-[13px] text-muted">
            {data ? countText(data.total) : ""}
            {data && inbox.isError ? " The server does not respond. Trying again…" : ""}
          </p>
        </div>
        <Notifying />
      </div>
      {inbox.isPending && <Loading what="the questions" />}
      {inbox.isError && !data && <ErrorBox error={inbox.error} onRetry={() => void inbox.refetch()} />}
      {data && shown.length === 0 && (
        <Notice title="Nothing waits for you">
          When an agent asks for a permission or a form, its question appears here, from every session.
        </Notice>
      )}
      {shown.length > 0 && (
        <p className="text-xs text-muted max-sm:hidden">
          <Kbd>j</Kbd> <Kbd>k</Kbd> next, previous question · <Kbd>1</Kbd> <Kbd>2</Kbd> answer it · <Kbd>o</Kbd> open
          its session
        </p>
      )}
      <ul ref={list} className="flex flex-col gap-3">
        {shown.map((q) => (
          <li key={keyOf(q)} data-session={keyOf(q)}>
            <Question asked={q} waits={waiting.has(keyOf(q))} now={now} />
          </li>
        ))}
      </ul>
      {data?.next && (
        <p className="text-[13px] text-muted">
          The newest {data.questions.length} are shown. Answer some to see the others.
        </p>
      )}
    </div>
  );
}

function countText(n: number): string {
  if (n === 0) return "No question waits.";
  return n === 1 ? "1 question waits for you." : `${n.toLocaleString("en")} questions wait for you.`;
}

function Question({ asked: { session, question }, waits, now }: { asked: InboxQuestion; waits: boolean; now: number }) {
  const queries = useQueryClient();
  const answer = async (p: Permission, option?: string, input?: JsonObject) => {
    try {
      return await api.answer(session.id, p, option, { input });
    } finally {
      void queries.invalidateQueries({ queryKey: inboxKey });
    }
  };
  // A question that no longer waits is read once more: it says who answered, and how.
  const over = useQuery({
    queryKey: ["over", session.id, question.offset],
    queryFn: async ({ signal }) => {
      const now = await api.snapshot(session.id, { limit: 1 }, { signal });
      return now.permissions?.find((p) => p.offset === question.offset && p.id === question.id) ?? null;
    },
    enabled: !waits,
    retry: false,
  });
  const ended =
    !waits && over.data?.status !== "open" ? (over.data ?? { ...question, status: "cancelled" }) : undefined;
  return (
    <article aria-label={`Question in ${session.title || session.id}`}>
      <p className="mb-1 flex flex-wrap items-baseline gap-x-2 text-[13px]">
        <Link
          to="/s/$id"
          params={{ id: session.id }}
          search={{ ask: question.offset }}
          className="font-medium [overflow-wrap:anywhere] hover:underline max-sm:py-2"
        >
          <bdi>{visible(session.title || session.id)}</bdi>
        </Link>
        <span className="text-xs text-muted">
          {session.agent && `${visible(session.agent)} · `}
          <time dateTime={question.started_at}>{ago(question.started_at, now)}</time>
        </span>
      </p>
      <Ask permission={ended && over.isFetched ? (ended as Permission) : question} onAnswer={answer} />
    </article>
  );
}

/** Asks for notifications of new questions: only a click may do so. */
function Notifying() {
  const state = useNotifying();
  if (state === "unsupported") return null;
  if (state === "denied") return <p className="text-xs text-muted">This browser blocks notifications of this page.</p>;
  return (
    <Button
      aria-pressed={state === "on"}
      className="max-sm:min-h-11"
      onClick={() => void switchNotifying(state !== "on")}
    >
      {state === "on" ? "Notifications are on" : "Notify me"}
    </Button>
  );
}
