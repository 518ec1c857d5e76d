import { memo } from "react";
import { visible } from "../conversation/action";
import { callSummary } from "../conversation/tool";
import { duration, short } from "../format";
import { markOf, statusColour, statusLabel } from "../status";
import type { ModelCall } from "./calls";
import { placeOf, type Span, type Turn } from "./spans";

interface Props {
  span: Span;
  turn: Turn;
  onSeek: (at: number) => void;
  onAsk: (call: ModelCall) => void;
}

const bars = { run: "bg-bar", model: "bg-accent", tool: "bg-run" };

/** What a line is, in a few words, and what more there is to say. */
function describe(span: Span): { name: string; about: string; status: string } {
  if (span.kind === "run") {
    const name = span.turn === undefined ? span.run.agent || "Sub-agent" : `Turn ${span.turn}`;
    return { name, about: span.turn === undefined ? "" : (span.run.agent ?? ""), status: span.run.status };
  }
  if (span.kind === "tool")
    return { name: visible(span.call.name) || "tool", about: callSummary(span.call), status: span.call.status };
  const { usage: u } = span.call;
  const about = u ? `${short(u.input)} → ${short(u.output)} tokens${u.model ? ` · ${u.model}` : ""}` : "";
  return { name: `Model call ${span.call.n}`, about, status: span.until === undefined ? "running" : "complete" };
}

/** A line of the waterfall: its name, its bar on the axis of the turn, and how long it took. */
export const SpanLine = memo(function SpanLine({ span, turn, onSeek, onAsk }: Props) {
  const { name, about, status } = describe(span);
  const { left, width } = placeOf(span, turn);
  const took = span.until === undefined ? "" : duration(Math.max(0, span.until - span.from));
  const failed = status === "failed" || status === "interrupted";
  const first =
    span.kind === "model" && span.call.began > span.call.sent ? duration(span.call.began - span.call.sent) : "";
  const open = () => (span.kind === "model" ? onAsk(span.call) : onSeek(Math.ceil(span.offset) + 1));
  return (
    <button
      type="button"
      onClick={open}
      title={span.kind === "model" ? "Show what the model was sent" : "Go to this moment"}
      className={`grid h-7 w-full pointer-coarse:h-11 grid-cols-[minmax(9rem,22rem)_1fr_7rem] items-center gap-2 rounded px-1 text-left text-[13px] hover:bg-raised max-sm:grid-cols-[minmax(7rem,1fr)_5rem_4.5rem] ${span.kind === "run" && span.depth === 0 ? "border-t border-line font-semibold" : ""}`}
    >
      <span className="flex min-w-0 items-baseline gap-1.5" style={{ paddingLeft: `${span.depth * 0.9}rem` }}>
        <span className={`shrink-0 text-xs ${statusColour(status)}`}>
          <span aria-hidden="true">{markOf(status)}</span>
          <span className="sr-only">{statusLabel(status)}: </span>
        </span>
        <span className={`shrink-0 ${span.kind === "tool" ? "font-mono text-xs" : ""}`}>{name}</span>
        <span className="min-w-0 truncate text-xs font-normal text-muted">{about}</span>
      </span>
      <span aria-hidden="true" className="relative h-3.5 rounded-sm bg-raised">
        <span
          className={`absolute inset-y-0 rounded-sm forced-colors:bg-[CanvasText] ${failed ? "bg-fault" : bars[span.kind]} ${span.until === undefined ? "opacity-60" : ""}`}
          style={{ left: `${left}%`, width: `${width}%` }}
        />
      </span>
      <span className="truncate text-right text-xs text-muted tabular-nums">
        {took || "running"}
        {first && (
          <span className="max-sm:hidden" title={`The first of its answer came after ${first}`}>
            {" "}
            (first {first})
          </span>
        )}
      </span>
    </button>
  );
});
