import { useEffect, useMemo, useRef, useState } from "react";
import { blurAfterClick } from "@/components/blur-after-click";
import { Conversation } from "@/components/conversation/list";
import type { RowActions } from "@/components/conversation/rows";
import { RawEvents } from "@/components/events/raw-events";
import KeysHelp from "@/components/keys-help";
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
import { useReading } from "@/hooks/reading";
import { useRows, useSelection } from "@/hooks/rows";
import { useGoKeys, usePlaybackKeys } from "@/hooks/session-keys";
import { SourceContext } from "@/hooks/source";
import { applyTheme } from "@/hooks/theme";
import type { Panel } from "@/router/search";
import { Header } from "./header";
import { lookOf } from "./look";
import { Poster } from "./poster";
import { deckOptions, readTape, sourceOf, type Tape } from "./tape";

/** A recording: the player of the screen, without a server. */
export function Recording() {
  const [tape, setTape] = useState<Tape>();
  const [error, setError] = useState<unknown>();
  const [part, setPart] = useState("");
  useEffect(() => {
    readTape(document, (done, all) => setPart(all > 4 ? ` (${Math.round((100 * done) / all)}%)` : "")).then((read) => {
      const { theme } = lookOf(read.about, location.hash);
      if (theme) applyTheme(theme);
      setTape(read);
    }, setError);
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

const shownViews = ["conversation", "events"] as const;
type Shown = (typeof shownViews)[number];
const labels = { conversation: "Conversation", events: "Events" };

function Player({ tape }: { tape: Tape }) {
  const { about } = tape;
  const { id } = about.session;
  const options = useMemo(() => deckOptions(tape), [tape]);
  const [look] = useState(() => lookOf(about, location.hash));
  const [deck, state] = useDeck(id, look.at, options);
  const [poster, setPoster] = useState(look.start !== undefined);
  const moved =
    state.playing || (state.entry !== undefined && !state.seeking && state.at !== Math.min(look.at, state.head));
  if (poster && moved) setPoster(false); // by a key or the bar
  const playFromStart = () => {
    setPoster(false);
    deck.playFrom(look.start ?? 0);
  };
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
  const { selected, select, unfolded, chosen, show: showRow } = useSelection(rows);
  const reading = useReading(unfolded);
  const { seeking } = state;
  const find = useFind({ id, head: state.head, thread, rows, seeking, onSeek: deck.seek, onRow: showRow });
  const lines = useRef<HTMLDivElement>(null);
  useFindMarks(lines, find.open ? find.q : undefined, chosen?.offset);
  const actions = useMemo<RowActions>(() => ({ onSeek: deck.seek, onPlay: deck.playFrom, onUndo: () => {} }), [deck]);

  const toTurn = (offset: number) => {
    const row = rows.find((r) => r.offset >= offset);
    if (row && (rows[0]?.offset ?? 0) <= offset) select(row.key);
    else deck.seek(offset + 1);
    if (!isWide()) setPanelOpen(false);
  };

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
          reading={reading.items}
        />
        <div className="relative flex min-h-32 flex-1 basis-0">
          {poster && <Poster title={view.session.title || id} onPlay={playFromStart} />}
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
                  isOpen={unfolded.isOpen}
                  onToggle={unfolded.toggle}
                  dense={reading.dense}
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
              onTurn={toTurn}
              outline={{ index: about.index, hidden, at: view.at }}
              changed={{ calls: (thread ? parts : view).tool_calls, earlier: 0 }}
            />
          )}
        </div>
        <Transport deck={deck} state={state} cut={cut} onCut={setCut} recording />
      </main>
      {help && <KeysHelp onClose={() => setHelp(false)} recording />}
    </div>
  );
}
