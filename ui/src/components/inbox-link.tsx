import { Link, useNavigate } from "@tanstack/react-router";
import { useCount, useNotices } from "@/hooks/attention";
import { useInboxLater } from "@/hooks/inbox";

/** The link to the inbox, with the number of questions that wait. The tab shows the number, too. */
export function InboxLink() {
  const inbox = useInboxLater();
  const navigate = useNavigate();
  const n = inbox.data?.total ?? 0;
  useCount(n);
  useNotices(inbox.data, (q) => {
    void navigate({ to: "/s/$id", params: { id: q.session.id }, search: { ask: q.question.offset } });
  });
  return (
    <Link
      to="/inbox"
      className="inline-flex items-center gap-1.5 rounded-md px-2 py-1 max-sm:px-1.5 text-muted hover:bg-raised hover:text-text"
      activeProps={{ className: "text-text font-medium" }}
    >
      Inbox
      {n > 0 && (
        <span className="rounded-full bg-warn-soft px-1.5 text-xs font-semibold text-warn tabular-nums">
          {n}
          <span className="sr-only"> {n === 1 ? "question waits" : "questions wait"} for you</span>
        </span>
      )}
    </Link>
  );
}
