import type { Permission } from "@tapedeck/client";
import { visible } from "../conversation/action";
import { brief } from "../format";
import { Button, Kbd } from "../ui";

/** Says that the agent waits for the user, wherever the conversation is scrolled to. */
export function WaitingBar({ open, onShow }: { open: readonly Permission[]; onShow: () => void }) {
  const first = open[0];
  if (!first) return null;
  const text = visible(brief(first.message ?? "", 160));
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-t border-warn/40 bg-warn-soft px-4 py-1.5 text-[13px]">
      <p role="status" className="min-w-0 flex-1 basis-48 truncate">
        <span className="font-medium text-warn">
          {open.length === 1 ? "Waiting for your answer" : `${open.length} questions wait for your answer`}
        </span>
        {text && <span className="text-muted"> · {text}</span>}
      </p>
      <Button className="max-sm:min-h-11" onClick={onShow}>
        Show the question <Kbd>q</Kbd>
      </Button>
    </div>
  );
}
