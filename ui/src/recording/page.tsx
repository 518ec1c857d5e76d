import { useEffect, useMemo, useRef, useState } from "react";
import { blurAfterClick } from "@/components/blur-after-click";
import { Conversation } from "@/components/conversation/list";
import type { RowActions } from "@/components/conversation/rows";
import { RawEvents } from "@/components/events/raw-events";
import { KeysHelp } from "@/components/keys-help";
import { FindBar } from "@/components/session/find-bar";
import { useFindMarks } from "@/components/session/find-marks";
import { Panels } from "@/components/session/panels";
import { ThreadBar } from "@/components/session/part";
import { isWide, ViewTabs } from "@/components/session/view-tabs";
import { Transport } from "@/components/transport/transport";
import { ErrorBox, Loading, Notice } from "@/components/ui";
import { useDeck } from "@/hooks/deck";
import { useFind, useFindKeys } from "@/hooks/find";
import { useIdleCut } from "@/hooks/idle-cut";
import { useKeys } from "@/hooks/keys";
import { usePositionText } from "@/hooks/position-text";
import type { RawFilter } from "@/hooks/raw-events";
import { useRows, useSelection } from "@/hooks/rows";
import { useGoKeys, usePlaybackKeys } from "@/hooks/session-keys";
import { SourceContext } from "@/hooks/source";
import type { Panel } from "@/router/search";
import { Header } from "./header";
import { deckOptions, readTape, sourceOf, type Tape } from "./tape";

/** A recording: the player of the screen, without a server. */
export function Recording() {
  const [tape, setTape] = useState<Tape>();
  const [error, setError] = useState<unknown>();
  const [part, setPart] = useState("");
  useEffect(() => {
    readTape(document, (done, all) => setPart(all > 4 ? ` (${Math.round((100 * done) / all)}%)` : "")).then(
      setTape,
      setError,
    );
  }, []);
  const source = useMemo(() => tape && sourceOf(tape), [tape]);
  useEffect(blurAfterClick, []);
  if (error !== undefined)
    return (
      <main className="mx-auto max-w-2xl p-8">
        <ErrorBox error={error} />
      </main>
    );
  if (!tape || !source) return <Loading what={`the recording${part}`} />;
  return (
    <SourceContext value={source}>
      <Player tape={tape} />
    </SourceContext>
  );
}

/** The initial playhead from the URL: #at=42. By default the end. */
function wantedAt(): number {
  const at = Number(new URLSearchParams(location.hash.slice(1)).get("at") ?? Number.NaN);
  return Number.isSafeInteger(at) && at >= 0 ? at : Number.MAX_SAFE_INTEGER;
}

const shownViews = ["conversation", "events"] as const;
type Shown = (typeof shownViews)[number];
const labels = { conversation: "Conversation", events: "Events" };

function Player({ tape }: { tape: Tape }) {
  const { about } = tape;
  const { id } = about.session;
  const options = useMemo(() => deckOptions(tape), [tape]);
  const [deck, state] = useDeck(id, wantedAt(), options);
  const { view, at } = state;
  const [shown, show] = useState<Shown>("conversation");
  const [panel, setPanel] = useState<Panel>("tools");
  const [panelOpen, setPanelOpen] = useState(isWide);
  const [thread, setThread] = useState<string>();
  const [filter, setFilter] = useState<RawFilter>({});
  const [help, setHelp] = useState(false);
  const [cut, setCut] = useIdleCut(about.index);
  const positionText = usePositionText(deck, state);
  const { parts, rows, hidden } = useRows({ deck, view, index: about.index, at, thread });
  const { selected, select, open, toggle, chosen, show: showRow } = useSelection(rows);
  const { seeking } = state;
  const find = useFind({ id, head: state.head, thread, rows, seeking, onSeek: deck.seek, onRow: showRow });
  const lines = useRef<HTMLDivElement>(null);
  useFindMarks(lines, find.open ? find.q : undefined, chosen?.offset);
  const actions = useMemo<RowActions>(() => ({ onSeek: deck.seek, onPlay: deck.playFrom, onUndo: () => {} }), [deck]);

  useGoKeys({ c: () => show("conversation"), e: () => show("events") });
  usePlaybackKeys(deck, state);
  useFindKeys(find, shown);
  useKeys({
    o: () => chosen && show("events"),
    p: () => setPanelOpen((o) => !o),
    "?": () => setHelp(true),
    Escape: () => {
      find.stop();
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      select(undefined);
    },
  });

  if (state.error !== undefined && !view)
    return (
      <main className="mx-auto max-w-2xl p-8">
        <ErrorBox error={state.error} />
      </main>
    );
  if (!view) return <Loading what="the recording" />;
  return (
    <div className="flex h-full flex-col">
      <Header about={about} info={view.session} atEnd={at >= state.head} onHelp={() => setHelp(true)} />
      <main className="flex min-h-0 flex-1 flex-col">
        <ViewTabs
          names={shownViews}
          labels={labels}
          current={shown}
          onChange={show}
          head={state.head}
          panelOpen={panelOpen}
          onPanel={() => setPanelOpen((o) => !o)}
        />
        <div className="relative flex min-h-32 flex-1 basis-0">
          {shown === "conversation" && (
            <div ref={lines} className="flex min-w-0 flex-1 flex-col">
              {find.open && <FindBar find={find} />}
              {thread && <ThreadBar name={thread} onAll={() => setThread(undefined)} />}
              {rows.length === 0 ? (
                <Notice title="No messages yet">At this moment the conversation was empty.</Notice>
              ) : (
                <Conversation
                  rows={rows}
                  positionText={positionText}
                  actions={actions}
                  selected={selected}
                  onSelect={select}
                  open={open}
                  onToggle={toggle}
                  following
                  busy={seeking}
                />
              )}
            </div>
          )}
          {shown === "events" && (
            <RawEvents
              id={id}
              head={state.head}
              at={at}
              live={false}
              positionText={positionText}
              filter={filter}
              onFilter={setFilter}
              onSeek={deck.seek}
              hidden={hidden}
            />
          )}
          {panelOpen && shown === "conversation" && parts && (
            <Panels
              id={id}
              view={{ ...parts, threads: view.threads }}
              positionText={positionText}
              head={state.head}
              panel={panel}
              onPanel={setPanel}
              thread={thread}
              onThread={setThread}
              onSeek={deck.seek}
            />
          )}
        </div>
        <Transport deck={deck} state={state} cut={cut} onCut={setCut} recording />
      </main>
      {help && <KeysHelp onClose={() => setHelp(false)} recording />}
    </div>
  );
}
