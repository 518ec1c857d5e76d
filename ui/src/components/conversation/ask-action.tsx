import { languageOfFile } from "../code/language";
import { type Action, linesOfDiff, visible } from "./action";
import { DiffLines } from "./edit-diff";

/** Shows the complete action of a permission request, so that the user knows what they answer. */
export function AskAction({ action: a, message }: { action: Action; message?: string }) {
  return (
    <div className="mt-2 flex flex-col gap-2">
      {a.command && <Block label="Command" text={a.command} hint={a.folder && `in ${visible(a.folder)}`} prompt />}
      {a.changes.map((c, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a file may have two changes
        <div key={i} className="min-w-0">
          <p className="mb-1 font-mono text-xs [overflow-wrap:anywhere]">{visible(c.path)}</p>
          <DiffLines lines={linesOfDiff(c.diff)} label={`Changes to ${c.path}`} language={languageOfFile(c.path)} />
        </div>
      ))}
      {a.locations.length > 0 && (
        <div>
          <p className="mb-1 text-xs text-muted">{a.locations.length === 1 ? "Location" : "Locations"}</p>
          <ul className="font-mono text-xs [overflow-wrap:anywhere]">
            {a.locations.map((l) => (
              <li key={`${l.path}:${l.line}`}>{visible(l.line === undefined ? l.path : `${l.path}:${l.line}`)}</li>
            ))}
          </ul>
        </div>
      )}
      {a.arguments && (
        <Block label={a.command || a.changes.length > 0 ? "Other arguments" : "Arguments"} text={a.arguments} />
      )}
      {a.note && a.note !== message && (
        <p className="[overflow-wrap:anywhere] text-muted">Note from the agent: {visible(a.note)}</p>
      )}
      {(a.cut > 0 || a.more > 0) && <p className="font-medium text-bad">{notShownText(a)}</p>}
    </div>
  );
}

function notShownText(a: Action): string {
  const parts = [];
  if (a.cut > 0) parts.push(`${a.cut.toLocaleString("en")} ${a.cut === 1 ? "byte" : "bytes"} of this`);
  if (a.more > 0) parts.push(`${a.more.toLocaleString("en")} more ${a.more === 1 ? "file" : "files"}`);
  return `Not shown: ${parts.join(" and ")}.`;
}

/** A wrapped text with its number of lines. It scrolls when it is long; a command is always shown whole. */
function Block({ label, text, hint, prompt }: { label: string; text: string; hint?: string; prompt?: boolean }) {
  const lines = text.split("\n").length;
  return (
    <div className="min-w-0">
      <p className="mb-1 text-xs [overflow-wrap:anywhere] text-muted">
        {label}
        {hint && ` ${hint}`}
        {!prompt && lines > 12 && ` · ${lines.toLocaleString("en")} lines, scroll to read all`}
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields, but a label needs a role */}
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
        tabIndex={0}
        role="group"
        aria-label={label}
        className={`overflow-auto rounded-md border border-field bg-bg px-3 py-2 font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere] ${prompt ? "" : "max-h-64"}`}
      >
        {prompt && <span className="text-muted select-none">$ </span>}
        {visible(text)}
      </pre>
    </div>
  );
}
