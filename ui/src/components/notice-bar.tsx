import { dismiss, useNotice } from "@/hooks/notices";
import { IconButton } from "./ui";

/** The message about a completed action. Screen readers announce it. */
export function NoticeBar() {
  const notice = useNotice();
  return (
    <div role="status" className="pointer-events-none fixed inset-x-0 bottom-36 z-30 flex justify-center px-4">
      {notice && (
        <div
          key={notice.id}
          className={`pointer-events-auto flex max-w-xl items-center gap-3 rounded-lg border px-4 py-1.5 text-[13px] shadow-lg ${notice.bad ? "border-bad bg-bad-soft text-bad" : "border-strong bg-panel"}`}
        >
          <span className="min-w-0 [overflow-wrap:anywhere]">{notice.text}</span>
          {notice.action && (
            <button
              type="button"
              className="min-h-8 font-semibold whitespace-nowrap text-accent underline pointer-coarse:min-h-11"
              onClick={notice.action.run}
            >
              {notice.action.label}
            </button>
          )}
          <IconButton label="Dismiss" icon="close" className="-mr-2" onClick={dismiss} />
        </div>
      )}
    </div>
  );
}
