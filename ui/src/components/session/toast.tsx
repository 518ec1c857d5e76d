import { useEffect } from "react";

/** A message about a completed action, for some seconds. Screen readers announce it. */
export function Toast({ text, onGone }: { text: string; onGone: () => void }) {
  useEffect(() => {
    if (!text) return;
    const t = setTimeout(onGone, 3000);
    return () => clearTimeout(t);
  }, [text, onGone]);
  return (
    <>
      <p role="status" className="sr-only">
        {text}
      </p>
      {text && (
        <div
          aria-hidden="true"
          className="fixed bottom-36 left-1/2 z-20 -translate-x-1/2 rounded-full bg-text px-4 py-1.5 text-[13px] text-bg shadow-lg"
        >
          {text}
        </div>
      )}
    </>
  );
}
