import { useState } from "react";
import { announce } from "@/hooks/notices";
import { logOut, useViewer } from "@/hooks/viewer";
import { Button } from "./ui";

/** Who is logged in, and the way out. Nothing on a server without access control. */
export function Account() {
  const viewer = useViewer();
  const [busy, setBusy] = useState(false);
  if (!viewer?.subject) return null;
  return (
    <span className="flex min-w-0 items-center gap-1 text-[13px]">
      <span
        className="max-w-40 truncate text-muted"
        title={`Logged in as ${viewer.subject}, with the role ${viewer.role}`}
      >
        <span className="sr-only">Logged in as </span>
        {viewer.subject}
        {viewer.role === "reader" && " (read-only)"}
      </span>
      <Button
        look="ghost"
        busy={busy}
        onClick={() => {
          setBusy(true);
          logOut().catch((err: Error) => {
            setBusy(false);
            announce({ text: `You are still logged in: ${err.message}`, bad: true });
          });
        }}
      >
        Log out
      </Button>
    </span>
  );
}
