import type { SessionEntry } from "@tapedeck/client";
import { archived, has, starred } from "@/hooks/labels";
import { plural } from "./format";
import type { useManage } from "./manage";
import { Menu } from "./menu";
import { Button } from "./ui";

interface Props {
  /** The marked sessions. */
  marked: SessionEntry[];
  manage: ReturnType<typeof useManage>;
  onCompare: () => void;
  onUnmark: () => void;
}

/** What can be done with the marked sessions together. */
export function BulkBar({ marked, manage, onCompare, onUnmark }: Props) {
  const open = marked.filter((s) => !s.closed);
  const allStarred = open.length > 0 && open.every((s) => has(s, starred));
  const allArchived = open.length > 0 && open.every((s) => has(s, archived));
  const none = open.length === 0 ? { disabledReason: "All of them are closed" } : {};
  const running = open.some((s) => (s.runs?.length ?? 0) > 0)
    ? { disabledReason: "One of them has an open run" }
    : none;
  const then = (act: () => void) => () => {
    act();
    onUnmark();
  };
  return (
    <section aria-label="Marked sessions" className="ml-auto flex flex-wrap items-center gap-2">
      <span role="status">{plural(marked.length, "session")} marked</span>
      <Button
        onClick={onCompare}
        disabled={marked.length !== 2}
        title={marked.length === 2 ? "c" : "Mark two sessions to compare them"}
      >
        Compare
      </Button>
      <Button icon="archive" disabled={open.length === 0} onClick={then(() => manage.archive(open, !allArchived))}>
        {allArchived ? "Take out of the archive" : "Archive"}
      </Button>
      <Menu
        label="More for the marked sessions"
        items={[
          {
            label: allStarred ? "Remove the stars" : "Star",
            icon: allStarred ? "starred" : "star",
            onChoose: then(() => manage.star(open, !allStarred)),
            ...none,
          },
          { label: "Close…", icon: "lock", onChoose: () => manage.close(open), ...running },
          { label: "Delete", icon: "clear", danger: true, onChoose: then(() => manage.remove(marked)) },
        ]}
      />
      <Button look="ghost" onClick={onUnmark}>
        Unmark
      </Button>
    </section>
  );
}
