import { useState } from "react";
import { keysAreOn, switchKeys } from "@/hooks/keys";
import { keyGroups } from "./keys-list";
import { Dialog, Kbd } from "./ui";

/** Shortcuts that a recording does not have. */
const notInRecording = new Set([
  "L",
  "y",
  "r",
  "b",
  "R",
  "m",
  "w",
  "z",
  "g t",
  "g b",
  "g s",
  "j k Enter",
  "x c",
  "+ - 0",
  "b c",
  "Ctrl G",
  "Ctrl K",
]);

export default function KeysHelp({ onClose, recording }: { onClose: () => void; recording?: boolean }) {
  const [on, setOn] = useState(keysAreOn);
  const turn = (to: boolean) => {
    switchKeys(to);
    setOn(to);
  };
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} wide="all">
      <div className="gap-6 sm:columns-2 lg:columns-3">
        {keyGroups.map(([title, keys]) => (
          <section key={title} className="mb-5 break-inside-avoid text-[13px]">
            <h3 className="mb-1 font-semibold">{title}</h3>
            <dl className="grid grid-cols-[6.5rem_1fr] gap-x-2 gap-y-1">
              {keys
                .filter(([k]) => !recording || !notInRecording.has(k))
                .map(([k, what]) => (
                  <div key={k} className="contents">
                    <dt>
                      <Kbd>{k}</Kbd>
                    </dt>
                    <dd className="text-muted">{what}</dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
      <label className="mt-4 flex items-center gap-2 border-t border-line pt-3 text-[13px]">
        <input type="checkbox" checked={on} onChange={(e) => turn(e.target.checked)} /> Enable single-key shortcuts
      </label>
    </Dialog>
  );
}
