import type { ReplayIndex, Snapshot } from "@/fold/types";
import { ExportDialog } from "./export-dialog";
import { ForkDialog } from "./fork-dialog";
import { RewindDialog } from "./rewind-dialog";

/** What somebody is about to do. */
export type Dialog = { what: "rewind"; invocation: string } | { what: "fork"; at: number } | { what: "export" };

interface Props {
  id: string;
  what: Dialog;
  view: Snapshot;
  index?: ReplayIndex;
  /** Where the playhead is; absent for live. */
  at?: number;
  onChange: (d?: Dialog) => void;
  onForked: (id: string) => void;
}

/** What asks before something is done to a session, one at a time. */
export function SessionDialog({ id, what, view, index, at, onChange, onForked }: Props) {
  const close = () => onChange(undefined);
  switch (what.what) {
    case "rewind":
      return (
        <RewindDialog
          id={id}
          invocation={what.invocation}
          first={index?.invocations.find((i) => i.invocation === what.invocation)?.first}
          view={view}
          onClose={close}
          onDone={close}
          onFork={(offset) => onChange({ what: "fork", at: offset })}
        />
      );
    case "fork":
      return (
        <ForkDialog
          id={id}
          title={view.session.title}
          at={what.at}
          onClose={close}
          onDone={(made) => onForked(made.id)}
        />
      );
    case "export":
      return <ExportDialog id={id} at={at} onClose={close} />;
  }
}
