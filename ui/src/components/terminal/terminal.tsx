import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import type { ToolCall } from "@tapedeck/client";
import type { TerminalInfo } from "@tapedeck/client/fold";
import type { Deck, DeckState } from "@tapedeck/client/player";
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useChannel } from "@/hooks/channel";
import { useSource } from "@/hooks/source";
import { useTheme } from "@/hooks/theme";
import { visible } from "../conversation/action";
import { callSummary } from "../conversation/tool";
import { plural } from "../format";
import { ErrorBox, Loading, Notice } from "../ui";
import { css, palettes } from "./colours";
import { TerminalPlayer } from "./player";
import type { Screen, StyledText } from "./screen";

/** The line height, as in app.css. */
const lineHeight = 18;

interface Props {
  deck: Deck;
  state: DeckState;
  thread?: string;
  /** The chosen terminal; absent for the last used one. */
  terminal?: string;
  onTerminal: (id?: string) => void;
  calls: ToolCall[];
}

/** The terminals of a session at the playhead. */
export default function Terminal({ deck, state, thread, terminal, onTerminal, calls }: Props) {
  const { at, live } = state;
  const { log, ready, error, retry } = useChannel(deck, "terminal", at);
  const player = useMemo(() => new TerminalPlayer(log), [log]);
  const shown = useSyncExternalStore(player.subscribe, player.get);
  const sizes = useSizes(deck.id, ready ? log.from : 0);
  useEffect(() => {
    if (sizes) player.setEarlierSizes(sizes);
    if (ready && sizes) player.show({ at, terminal, thread });
  }, [player, ready, sizes, at, terminal, thread]);
  useEffect(() => () => player.close(), [player]);

  const { current, terminals, screen } = shown;
  if (error !== undefined && !ready)
    return (
      <div className="flex-1 p-4">
        <ErrorBox error={error} onRetry={retry} />
      </div>
    );
  if (shown.version === 0 || (current && !screen)) return <Loading what="the terminal" />;
  if (!current || !screen)
    return (
      <div className="flex-1">
        <Notice title="No terminal output">
          {live ? "The output of the agent's commands appears here." : "There was no terminal at this moment."}
        </Notice>
      </div>
    );
  return (
    <div className="flex min-w-0 flex-1 flex-col">
      <Bar
        terminals={terminals}
        current={current}
        calls={calls}
        chosen={terminal !== undefined && terminal === current.id}
        onChoose={onTerminal}
        older={log.from > 0}
        screen={screen}
      />
      <Lines screen={screen} version={shown.version} label={terminalLabel(current, calls)} />
    </div>
  );
}

/** Loads the terminal sizes from before the loaded events, if any. */
function useSizes(id: string, from: number) {
  const source = useSource();
  const found = useQuery({
    queryKey: ["sizes", id, from],
    queryFn: ({ signal }) =>
      source.events(id, { from, reverse: true, type: "terminal.resize", limit: 200 }, { signal }),
    enabled: from > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (old) => old,
  });
  return from === 0 ? none : found.isError ? none : found.data?.events;
}
const none: never[] = [];

/** The displayed name of a terminal: the command that runs in it, or its id. */
function terminalLabel(t: TerminalInfo, calls: ToolCall[]): string {
  const call = calls.findLast((c) => c.id === t.id);
  return call ? visible(`${call.name} ${callSummary(call)}`).slice(0, 80) : t.id.slice(0, 80);
}

interface BarProps {
  terminals: TerminalInfo[];
  current: TerminalInfo;
  calls: ToolCall[];
  chosen: boolean;
  onChoose: (id?: string) => void;
  older: boolean;
  screen: Screen;
}

function Bar({ terminals, current, calls, chosen, onChoose, older, screen }: BarProps) {
  return (
    <div className="flex min-h-9 flex-wrap items-center gap-x-3 border-b border-line px-4 py-1 text-[13px]">
      {terminals.length > 1 ? (
        <select
          aria-label="Terminal"
          value={chosen ? current.id : ""}
          onChange={(e) => onChoose(e.target.value || undefined)}
          className="h-7 max-w-96 rounded-md border border-line bg-panel px-1.5"
        >
          <option value="">Last used: {terminalLabel(terminals.reduce(later), calls)}</option>
          {terminals.map((t) => (
            <option key={t.id} value={t.id}>
              {terminalLabel(t, calls)}
              {t.exit ? ` (${t.exit})` : ""}
            </option>
          ))}
        </select>
      ) : (
        <span className="truncate font-mono font-medium">{terminalLabel(current, calls)}</span>
      )}
      {current.exit && (
        <span className={`font-medium ${current.failed ? "text-bad" : "text-ok"}`}>
          {current.failed ? "✕" : "✓"} {current.exit}
        </span>
      )}
      <span className="text-xs text-muted tabular-nums">
        {screen.cols} × {screen.rows}
        {terminals.length > 1 ? ` · ${plural(terminals.length, "terminal")}` : ""}
      </span>
      {older && <span className="text-xs text-muted">Older output is not shown</span>}
    </div>
  );
}

const later = (a: TerminalInfo, b: TerminalInfo) => (b.offset > a.offset ? b : a);

/** The lines. Only the visible ones have elements. */
function Lines({ screen, version, label }: { screen: Screen; version: number; label: string }) {
  const scroller = useRef<HTMLElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const palette = palettes[useTheme()];
  const count = screen.length;
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => lineHeight,
    overscan: 4,
    paddingStart: 8,
    paddingEnd: 8,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: it must run whenever the output changes
  useLayoutEffect(() => {
    const el = scroller.current;
    if (atEnd && el) el.scrollTop = el.scrollHeight;
  }, [version, count, atEnd]);
  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
      tabIndex={0}
      aria-label={`Terminal ${label}`}
      className="min-h-0 flex-1 overflow-auto px-3 [overflow-anchor:none]"
      style={{ backgroundColor: css(palette.back), color: css(palette.text) }}
      onScroll={(e) => {
        const el = e.currentTarget;
        setAtEnd(el.scrollHeight - el.scrollTop - el.clientHeight < 2 * lineHeight);
      }}
    >
      <div className="tty relative" style={{ height: virtual.getTotalSize(), minWidth: `${screen.cols}ch` }}>
        {virtual.getVirtualItems().map((v) => (
          <div key={v.key} className="tty-line absolute left-0" style={{ transform: `translateY(${v.start}px)` }}>
            <Line runs={screen.line(v.index, palette)} />
          </div>
        ))}
      </div>
    </section>
  );
}

const Line = memo(function Line({ runs }: { runs: StyledText[] }) {
  if (runs.length === 0) return "\u00a0";
  return runs.map((r, i) => (
    <span
      // biome-ignore lint/suspicious/noArrayIndexKey: they have no id
      key={i}
      className={r.cells ? `inline-block ${r.className ?? ""}` : r.className}
      style={r.cells ? { ...r.style, width: `${r.cells}ch` } : r.style}
    >
      {r.text}
    </span>
  ));
}, same);

function same(a: { runs: StyledText[] }, b: { runs: StyledText[] }): boolean {
  return (
    a.runs.length === b.runs.length &&
    a.runs.every((r, i) => {
      const o = b.runs[i]!;
      return (
        r.text === o.text &&
        r.cells === o.cells &&
        r.className === o.className &&
        r.style?.color === o.style?.color &&
        r.style?.backgroundColor === o.style?.backgroundColor
      );
    })
  );
}
