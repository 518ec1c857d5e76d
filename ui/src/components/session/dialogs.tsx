import type { Json, Message, ReplayIndex, Snapshot } from "@tapedeck/client";
import { EditDialog } from "./edit-dialog";
import { ExportDialog } from "./export-dialog";
import { ForkDialog } from "./fork-dialog";
import { RewindDialog } from "./rewind-dialog";
import { ShareDialog } from "./share-dialog";
import { StateDialog } from "./state-dialog";

/** The open dialog of a session. */
export type Dialog =
  | { kind: "rewind"; invocation: string }
  | { kind: "fork"; at: number }
  | { kind: "edit"; message: Message; again?: boolean }
  | { kind: "state"; at: number; value?: Json }
  | { kind: "share" }
  | { kind: "export"; recording?: boolean };

interface Props {
  id: string;
  dialog: Dialog;
  view: Snapshot;
  index?: ReplayIndex;
  /** The playhead; absent for live. */
  at?: number;
  head: number;
  onChange: (d?: Dialog) => void;
  onForked: (id: string) => void;
}

/** Shows the open dialog. */
export function SessionDialog({ id, dialog, view, index, at, head, onChange, onForked }: Props) {
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
    case "edit":
      return (
        <EditDialog
          id={id}
          title={view.session.title}
          message={dialog.message}
          again={dialog.again}
          at={
            index?.invocations.find((i) => i.invocation === dialog.message.invocation)?.first ?? dialog.message.offset
          }
          last={view.runs.find((r) => r.invocation === dialog.message.invocation)?.agent}
          own={view.session.agent}
          onClose={close}
          onDone={onForked}
        />
      );
    case "state":
      return (
        <StateDialog
          id={id}
          title={view.session.title}
          at={dialog.at}
          value={dialog.value}
          last={view.runs.findLast((r) => r.thread === "main")?.agent}
          own={view.session.agent}
          onClose={close}
          onDone={onForked}
        />
      );
    case "share":
      return (
        <ShareDialog
          id={id}
          at={at}
          head={head}
          onClose={close}
          onExport={() => onChange({ kind: "export", recording: true })}
        />
      );
    case "export":
      return <ExportDialog id={id} at={at} head={head} recording={dialog.recording} onClose={close} />;
  }
}
