import type { Json } from "@tapedeck/client";
import { useState } from "react";
import type { Language } from "./code/language";
import { useColouredText } from "./code/use-colours";
import { short } from "./format";
import { Button } from "./ui";

/** The number of characters shown before the user asks for all. */
const maxChars = 20_000;

/** Plain text. Only the start of a long text is shown at first. */
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
  const cut = !all && text.length > maxChars;
  const shown = cut ? text.slice(0, maxChars) : text;
  const ref = useColouredText<HTMLPreElement>(shown, language);
  return (
    <div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields, but a label needs a role */}
      <pre
        ref={ref}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
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
