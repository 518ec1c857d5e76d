import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { JsonObject, Permission } from "@tapedeck/client";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api } from "@/client";
import { BranchPoints } from "@/components/branches/switcher";
import { usePlacedBranchPoints } from "@/components/branches/use-branch-points";
import { Conversation } from "@/components/conversation/list";
import { invocationOf, isJump, type RowActions, taskOf } from "@/components/conversation/rows";
import { RawEvents } from "@/components/events/raw-events";
import { useManage } from "@/components/manage";
import { useOpenSession } from "@/components/open-session";
import { Branches } from "@/components/session/branches";
import { CannotShow } from "@/components/session/cannot-show";
import { Composer } from "@/components/session/composer";
import { type Dialog, SessionDialog } from "@/components/session/dialogs";
import { FindBar } from "@/components/session/find-bar";
import { useFindMarks } from "@/components/session/find-marks";
import { isDeleted, isUp, SessionHeader } from "@/components/session/header";
import { Panels, panelView } from "@/components/session/panels";
import { hasTerminal, NoRows, PeekBar, ThreadBar } from "@/components/session/part";
import { PeoplePanel } from "@/components/session/people";
import { ThreadPanels } from "@/components/session/thread-panels";
import { Toast } from "@/components/session/toast";
import { isWide, ViewTabs } from "@/components/session/view-tabs";
import { WaitingBar } from "@/components/session/waiting-bar";
import { TerminalTab } from "@/components/terminal/tab";
import { TimingTab } from "@/components/timing/tab";
import { Transport } from "@/components/transport/transport";
import { ErrorBox, Loading } from "@/components/ui";
import { WorkflowTab } from "@/components/workflow/tab";
import { isAddressOf, useAtInUrl } from "@/hooks/at-in-url";
import { useDeck } from "@/hooks/deck";
import { useEarlier, withEarlier } from "@/hooks/earlier";
import { useFind, useFindKeys } from "@/hooks/find";
import { useIdleCut } from "@/hooks/idle-cut";
import { useKeys } from "@/hooks/keys";
import { usePresence } from "@/hooks/people";
import { usePositionText } from "@/hooks/position-text";
import { useQuestions } from "@/hooks/questions";
import { useReading } from "@/hooks/reading";
import { useLife, useReplaced } from "@/hooks/replaced";
import { useRows, useSelection } from "@/hooks/rows";
import { useHandlers, useSame } from "@/hooks/same";
import { useGoKeys, usePlaybackKeys } from "@/hooks/session-keys";
import { useThrottled } from "@/hooks/tick";
import { useVerbs } from "@/hooks/verbs";
import { useViewer } from "@/hooks/viewer";
import { useZen } from "@/hooks/zen";
import { maxPanes, type Panel, type SessionSearch, type View, viewLabels, views } from "@/router/search";

const route = getRouteApi("/s/$id");

const peopleTab = <></>; // there is such a panel, and it is not shown

export function SessionPage() {
  const { id } = route.useParams();
  const [key, onReplaced] = useLife(id);
  // The key gives each session fresh state.
  return <Session key={key} id={id} onReplaced={onReplaced} />;
}

function Session({ id, onReplaced }: { id: string; onReplaced: () => void }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [deck, state] = useDeck(id, search.at);
  // What is not the conversation need not be drawn with each event.
  const head = useThrottled(state.head, 1000);
  const entry = useQuery({
    queryKey: ["session", id, head],
    queryFn: ({ signal }) => api.session(id, { signal }),
    placeholderData: (old) => old,
    retry: false,
  });
  useReplaced(state.connection, onReplaced);
  const presence = usePresence(deck, state);
  const viewer = useViewer();
  const manage = useManage(() => void navigate({ to: "/" }));
  const [dialog, setDialog] = useState<Dialog>();
  const onRewind = useCallback((invocation: string) => setDialog({ kind: "rewind", invocation }), []);
  const [toast, notify] = useState("");
  // The jump whose reverted events are shown; absent after the playhead is live again.
  const [peek, setPeek] = useState<number>();
  if (peek !== undefined && state.live) setPeek(undefined);
  const { view, index, live, at } = state;
  const shown = search.view ?? "conversation";
  const panel = search.panel ?? "tools";
  const [panelOpen, setPanelOpen] = useState(() => isWide() || (search.panel !== undefined && !search.pane));
  const [zen, setZen] = useZen();
  const [cut, setCut] = useIdleCut(index);
  const positionText = usePositionText(deck, state);

  const set = useCallback(
    (s: Partial<SessionSearch>, replace = true) => {
      // The playhead is written to the URL with a delay. By then the browser may already be on another page.
      if (isAddressOf(id)) void navigate({ search: (old: SessionSearch) => ({ ...old, ...s }), replace });
    },
    [id, navigate],
  );
  useAtInUrl(deck, state, search.at, set);
  useEffect(() => {
    document.title = `${view?.session.title || id} · Tapedeck`;
  }, [view?.session.title, id]);

  const thread = search.thread;
  const panes = search.pane ?? [];
  const jumps = index?.markers.filter(isJump).length ?? 0;
  const hasWorkflow = (index?.marked.workflow ?? 0) > 0 || shown === "workflow" || view?.session.agent === "workflow";
  const earlier = useEarlier(id, view, jumps);
  const all = useMemo(() => view && withEarlier(view, earlier.parts), [view, earlier.parts]);
  const { parts, rows, hidden } = useRows({ deck, view: all, index, at, thread });
  const placed = usePlacedBranchPoints(id, index, rows, at);
  // Only the newest jump can be undone directly.
  const newest = index?.markers.findLast(isJump)?.offset;
  const { selected, select, unfolded, chosen, show } = useSelection(rows);
  const reading = useReading(unfolded);

  const waiting = useMemo(() => parts?.permissions?.filter((p) => p.status === "open") ?? [], [parts?.permissions]);
  const nextQuestion = useQuestions(waiting, shown === "conversation" ? rows : undefined, search.ask, show, notify);

  const find = useFind({ id, head: state.head, thread, rows, seeking: state.seeking, onSeek: deck.seek, onRow: show });
  const lines = useRef<HTMLDivElement>(null);
  useFindMarks(lines, find.open ? find.q : undefined, chosen?.offset);

  /** Shows the first row of a turn. If it is not loaded, the playhead goes there. */
  const toTurn = (offset: number) => {
    const row = rows.find((r) => r.offset >= offset);
    if (row && (rows[0]?.offset ?? 0) <= offset) select(row.key);
    else deck.seek(offset + 1);
    if (!isWide()) setPanelOpen(false); // it would cover the turn
  };

  const closed = (isDeleted(state.connection) || entry.data?.closed || view?.session.closed) ?? false;
  const verbs = useVerbs(id, live, closed, index, notify, onRewind, isUp(state.connection));
  const { link, rewind, rewindDisabledReason } = verbs;
  const undoMutate = verbs.undo.mutate;
  const answer = useCallback(
    (p: Permission, option?: string, input?: JsonObject) => api.answer(id, p, option, { input }),
    [id],
  );
  useGoKeys({
    c: () => set({ view: undefined }),
    e: () => set({ view: "events" }),
    w: () => (hasWorkflow ? set({ view: "workflow" }) : false),
    t: () => set({ view: "terminal" }),
    b: () => set({ view: "branches" }),
    l: () => set({ view: "timing" }),
    s: () => void navigate({ to: "/" }),
    i: () => void navigate({ to: "/inbox" }),
  });
  usePlaybackKeys(deck, state);
  useFindKeys(find, shown);
  useOpenSession({ index, head: state.head, seek: deck.seek, seekPosition: deck.seekPosition });
  useKeys({
    o: () => chosen && set({ view: "events" }),
    y: () => link(at),
    m: () => (closed ? notify("Cannot set a bookmark: the session is closed") : verbs.mark.mutate(at - 1)),
    r: () => (chosen ? rewind(invocationOf(chosen)) : false),
    b: () => setDialog({ kind: "fork", at: chosen ? chosen.offset + 1 : at }),
    A: () => handlers.again(chosen && invocationOf(chosen)),
    R: () => document.getElementById("resume")?.click(),
    p: () => setPanelOpen((o) => !o),
    z: () => setZen((z) => !z),
    S: () => setDialog({ kind: "share" }),
    w: () => document.getElementById("composer")?.focus(),
    Escape: () => {
      find.stop();
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      select(undefined);
    },
  });

  const handlers = useHandlers({
    export: () => setDialog({ kind: "export" }),
    share: () => setDialog({ kind: "share" }),
    people: () => {
      setPanelOpen(true);
      set({ view: undefined, panel: "people" });
    },
    view: (v: View) => set({ view: v === "conversation" ? undefined : v }, false),
    panel: () => setPanelOpen((o) => !o),
    panelTab: (p: Panel) => set({ panel: p === "tools" ? undefined : p }),
    thread: (t?: string) => set({ thread: t }, false),
    pane: (t: string) => {
      if (!isWide()) setPanelOpen(false); // it would cover the thread's panel
      set({ pane: [...panes.filter((p) => p !== t), t].slice(-maxPanes) });
    },
    clear: (t: string) => verbs.clear.mutate(t),
    turn: toTurn,
    again: (invocation?: string) => {
      const message = taskOf(all, thread, invocation);
      if (message) setDialog({ kind: "edit", message, again: true });
      else notify("Cannot run it again: the message that began this turn is not on the page");
    },
    state: () => setDialog({ kind: "state", at, value: view?.state?.value }),
  });
  const actions = useMemo<RowActions>(
    () => ({
      onRewind: rewind,
      rewindDisabledReason,
      onCompare: (m) => void navigate({ to: "/compare", search: { a: id, at_a: m.offset, b: id } }),
      onFork: (offset) => setDialog({ kind: "fork", at: offset }),
      onEdit: (message) => setDialog({ kind: "edit", message }),
      onAgain: handlers.again,
      onLink: link,
      onSeek: deck.seek,
      onPlay: deck.playFrom,
      onShowHidden: (offset) => {
        setPeek(offset);
        deck.seek(offset);
      },
      onThread: (t) => set({ thread: t }, false),
      onUndo: () => undoMutate(undefined),
      onAnswer: answer,
    }),
    [deck, id, link, undoMutate, rewind, rewindDisabledReason, navigate, answer, set, handlers],
  );
  const info = useSame(view?.session);
  const names = useMemo(() => views.filter((v) => v !== "workflow" || hasWorkflow), [hasWorkflow]);
  const listed = useSame(entry.data, 4); // loaded again once a second, mostly with the same content
  const items = viewer?.role === "reader" ? undefined : listed;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the verbs do the same in every render
  const menu = useMemo(() => (items ? manage.itemsOf(items) : []), [items]);
  const panels = useSame(view && parts && panelView(parts, view.threads), 3);

  if (state.error && !view) return <CannotShow error={state.error} />;
  if (!view || !info) return <Loading what="the session" />;
  const run = view.runs.findLast((r) => r.thread === (thread ?? "main"));
  const asks = view.permissions?.some((p) => p.status === "open" && p.thread === (thread ?? "main")) ?? false;
  const onClear = live && !closed ? verbs.clear.mutate : undefined;
  const failed = [verbs.undo, verbs.clear, verbs.mark].find((m) => m.isError);
  return (
    <div className="flex h-full flex-col">
      <SessionHeader
        id={id}
        info={info}
        entry={listed}
        head={head}
        live={live}
        connection={state.connection}
        onReconnect={deck.reconnect}
        onExport={handlers.export}
        onShare={handlers.share}
        items={menu}
        presence={presence}
        onPeople={handlers.people}
      />
      <ViewTabs
        names={names}
        labels={viewLabels}
        current={shown}
        onChange={handlers.view}
        head={head}
        panelOpen={panelOpen}
        onPanel={handlers.panel}
        reading={reading.items}
      />
      {state.error !== undefined && (
        <div className="px-4 pt-2">
          <ErrorBox error={state.error} onRetry={deck.open} />
        </div>
      )}
      {failed && (
        <div className="px-4 pt-2">
          <ErrorBox error={failed.error} onClose={() => failed.reset()} />
        </div>
      )}
      <div className={`relative flex flex-1 basis-0 ${shown === "conversation" ? "min-h-32" : "min-h-80"}`}>
        {shown === "conversation" && (
          <div ref={lines} className="flex min-w-0 flex-1 flex-col">
            {find.open && <FindBar find={find} />}
            {thread && <ThreadBar name={thread} onAll={() => set({ thread: undefined })} />}
            {peek !== undefined && (
              <PeekBar
                onBack={deck.goLive}
                onUndo={
                  peek === newest && !closed
                    ? () => {
                        deck.goLive();
                        undoMutate(undefined);
                      }
                    : undefined
                }
              />
            )}
            {rows.length === 0 ? (
              <NoRows
                onTerminal={hasTerminal(deck, state.head) ? () => set({ view: "terminal" }, false) : undefined}
                live={live}
                session={view.session}
                connection={state.connection}
                zen={zen}
              />
            ) : (
              <BranchPoints value={placed}>
                <Conversation
                  rows={rows}
                  positionText={positionText}
                  actions={actions}
                  newest={live && !closed ? newest : undefined}
                  selected={selected}
                  onSelect={select}
                  isOpen={unfolded.isOpen}
                  onToggle={unfolded.toggle}
                  dense={reading.dense}
                  following
                  busy={state.seeking}
                  earlier={earlier.left > 0 ? { ...earlier, n: earlier.left } : undefined}
                />
              </BranchPoints>
            )}
            {live && <WaitingBar open={waiting} onShow={nextQuestion} />}
            <Composer
              key={thread}
              id={id}
              thread={thread ?? "main"}
              session={view.session}
              run={run}
              inputs={view.inputs}
              asks={asks}
              live={live}
              onLive={deck.goLive}
              connection={state.connection}
            />
          </div>
        )}
        {shown === "workflow" && (
          <WorkflowTab
            id={id}
            deck={deck}
            state={state}
            view={view}
            closed={closed}
            jumps={jumps}
            task={search.task}
            onTask={(task) => set({ task })}
            onThread={(t) => set({ view: undefined, thread: t }, false)}
            onAnswer={answer}
            notify={notify}
          />
        )}
        {shown === "timing" && (
          <TimingTab
            id={id}
            view={all ?? view}
            head={state.head}
            axis={index?.axis}
            onSeek={(moment) => {
              set({ view: undefined }, false);
              deck.seek(moment);
            }}
          />
        )}
        {shown === "events" && (
          <RawEvents
            id={id}
            head={state.head}
            at={at}
            live={live}
            positionText={positionText}
            filter={{ channel: search.channel, type: search.type, q: search.q }}
            onFilter={(f) => set({ channel: f.channel, type: f.type, q: f.q })}
            onSeek={deck.seek}
            hidden={hidden}
          />
        )}
        {shown === "terminal" && (
          <TerminalTab
            deck={deck}
            state={state}
            thread={thread}
            terminal={search.term}
            onTerminal={(term) => set({ term })}
            calls={view.tool_calls}
          />
        )}
        {shown === "branches" && (
          <div className="min-w-0 flex-1">
            <Branches
              id={id}
              index={index}
              at={live ? undefined : at}
              onSeek={deck.seek}
              onOpen={(moment) => set({ view: undefined, at: moment }, false)}
              onUndo={(m) => verbs.undo.mutate(m)}
              busy={verbs.undo.isPending}
            />
          </div>
        )}
        {shown === "conversation" && panes.length > 0 && (
          <ThreadPanels
            id={id}
            names={panes}
            view={view}
            jumps={jumps}
            live={live}
            onClose={(t) => set({ pane: panes.filter((p) => p !== t) })}
            onClear={onClear}
            onAnswer={answer}
          />
        )}
        {panelOpen && !zen && shown === "conversation" && panels && (
          <Panels
            id={id}
            view={panels}
            positionText={positionText}
            head={head}
            panel={panel}
            onPanel={handlers.panelTab}
            thread={thread}
            onThread={handlers.thread}
            onPane={handlers.pane}
            onSeek={deck.seek}
            onTurn={handlers.turn}
            outline={panel === "outline" ? { index, hidden, at: view.at } : undefined}
            changed={
              panel === "changes"
                ? { calls: (thread ? parts : (all ?? view))?.tool_calls ?? [], earlier: earlier.left }
                : undefined
            }
            onClear={live && !closed ? handlers.clear : undefined}
            onEditState={handlers.state}
            people={panel === "people" ? <PeoplePanel deck={deck} state={state} presence={presence} /> : peopleTab}
            peopleCount={live ? presence.people.length : 0}
          />
        )}
      </div>
      <Transport deck={deck} state={state} cut={cut} onCut={setCut} />
      <Toast text={toast} onGone={() => notify("")} />
      {manage.dialogs}
      {dialog && all && (
        <SessionDialog
          id={id}
          dialog={dialog}
          view={all}
          index={index}
          at={live ? undefined : at}
          head={state.head}
          onChange={setDialog}
          onForked={(made) => void navigate({ to: "/s/$id", params: { id: made }, search: {} })}
        />
      )}
    </div>
  );
}
