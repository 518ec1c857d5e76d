import { useState } from "react";
import { keysAreOn, switchKeys } from "@/hooks/keys";
import { Dialog, Kbd } from "./ui";

const groups: [string, [string, string][]][] = [
  [
    "Playback",
    [
      ["Space", "play, pause"],
      ["← →", "5 seconds back, forward"],
      ["Shift ← →", "a tenth of it back, forward"],
      [", .", "previous, next step"],
      ["Alt , .", "previous, next event"],
      ["[ ]", "previous, next marker"],
      ["t T", "next, previous tool call"],
      ["e E", "next, previous error"],
      ["u U", "next, previous message of a user"],
      ["0–9", "to so many tenths"],
      ["Home End", "to the start, the end"],
      ["L", "go live"],
      ["< > =", "slower, faster, 1×"],
      ["i", "skip idle times, or not"],
      ["a", "shorten idle times on the bar, or not"],
    ],
  ],
  [
    "Session",
    [
      ["j k", "select the next, the previous item"],
      ["Enter", "open it"],
      ["o", "show its events"],
      ["y", "copy a link to this moment"],
      ["r", "rewind to the selected item"],
      ["b", "fork at the selected item"],
      ["R", "resume the run"],
      ["m", "set a bookmark"],
      ["p", "show or hide the panel"],
      ["Esc", "leave a field, let go of the selection"],
    ],
  ],
  [
    "Going places",
    [
      ["g c", "conversation"],
      ["g e", "events"],
      ["g b", "branches"],
      ["g s", "sessions"],
      ["j k Enter", "in the list: next, previous, open"],
      ["x c", "in the list: mark, compare the marked"],
      ["/", "search, or to the composer"],
      ["?", "this list"],
    ],
  ],
];

export function KeysHelp({ onClose }: { onClose: () => void }) {
  const [on, setOn] = useState(keysAreOn);
  const turn = (to: boolean) => {
    switchKeys(to);
    setOn(to);
  };
  return (
    <Dialog title="Keys" onClose={onClose} wide>
      <div className="gap-6 sm:columns-2">
        {groups.map(([title, keys]) => (
          <section key={title} className="mb-5 break-inside-avoid text-[13px]">
            <h3 className="mb-1 font-semibold">{title}</h3>
            <dl className="grid grid-cols-[6.5rem_1fr] gap-y-1">
              {keys.map(([k, what]) => (
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
        <input type="checkbox" checked={on} onChange={(e) => turn(e.target.checked)} /> Single keys are shortcuts
      </label>
    </Dialog>
  );
}
