import { useEffect, useState } from "react";
import { copyText } from "@/hooks/clipboard";
import { IconButton } from "../ui";

/** How long the button shows the outcome. */
const shownMs = 2000;

/** A small button that copies a text, and says whether it could. */
export function CopyButton({ text, label, className = "size-6" }: { text: string; label: string; className?: string }) {
  const [outcome, setOutcome] = useState("");
  useEffect(() => {
    if (outcome === "") return;
    const timer = setTimeout(() => setOutcome(""), shownMs);
    return () => clearTimeout(timer);
  }, [outcome]);
  const done = outcome === "Copied";
  return (
    <>
      <IconButton
        className={className}
        label={label}
        icon={done ? "check" : "copy"}
        onClick={(e) => {
          e.stopPropagation();
          copyText(text).then(
            () => setOutcome("Copied"),
            (err: Error) => setOutcome(err.message),
          );
        }}
      />
      <span role="status" className={done || outcome === "" ? "sr-only" : "text-xs text-bad"}>
        {outcome}
      </span>
    </>
  );
}
