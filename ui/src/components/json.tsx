import { useState } from "react";
import type { Json } from "@/fold/types";
import type { Language } from "./code/language";
import { useColouredText } from "./code/use-colours";
import { short } from "./format";
import { Button } from "./ui";

/** So many characters are drawn at once; more only if somebody wants them. */
const most = 20_000;

/** Text as it is, with its beginning only if it is long. */
export function Plain({
  text,
  label,
  language,
  className = "",
}: {
  text: string;
  label: string;
  language?: Language;
  className?: string;
}) {
  const [all, setAll] = useState(false);
  const cut = !all && text.length > most;
  const shown = cut ? text.slice(0, most) : text;
  const ref = useColouredText<HTMLPreElement>(shown, language);
  return (
    <div>
      {/* biome-ignore lint/a11y/useSemanticElements: no set of fields, but what has a name needs a role */}
      <pre
        ref={ref}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        role="group"
        aria-label={label}
        className={`max-h-96 overflow-auto rounded-md bg-raised px-3 py-2 font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere] ${className}`}
      >
        {shown}
      </pre>
      {cut && (
        <Button look="ghost" onClick={() => setAll(true)}>
          Show all {short(text.length)} characters
        </Button>
      )}
    </div>
  );
}

export function JsonView({ value, label }: { value: Json | undefined; label: string }) {
  return <Plain text={pretty(value)} label={label} />;
}

export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
