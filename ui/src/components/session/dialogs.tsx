import type { ReplayIndex, Snapshot } from "@tapedeck/client";
import { ExportDialog } from "./export-dialog";
import { ForkDialog } from "./fork-dialog";
import { RewindDialog } from "./rewind-dialog";

/** The open dialog of a session. */
export type Dialog = { kind: "rewind"; invocation: string } | { kind: "fork"; at: number } | { kind: "export" };

interface Props {
  id: string;
  dialog: Dialog;
  view: Snapshot;
  index?: ReplayIndex;
  /** The playhead; absent for live. */
  at?: number;
  onChange: (d?: Dialog) => void;
  onForked: (id: string) => void;
}

/** Shows the open dialog. */
export function SessionDialog({ id, dialog, view, index, at, onChange, onForked }: Props) {
  const close = () => onChange(undefined);
  switch (dialog.kind) {
    case "rewind":
      return (
        <RewindDialog
          id={id}
          invocation={dialog.invocation}
          first={index?.invocations.find((i) => i.invocation === dialog.invocation)?.first}
          view={view}
          onClose={close}
          onDone={close}
          onFork={(offset) => onChange({ kind: "fork", at: offset })}
        />
      );
    case "fork":
      return (
        <ForkDialog
          id={id}
          title={view.session.title}
          at={dialog.at}
          onClose={close}
          onDone={(made) => onForked(made.id)}
        />
      );
    case "export":
      return <ExportDialog id={id} at={at} onClose={close} />;
  }
}
