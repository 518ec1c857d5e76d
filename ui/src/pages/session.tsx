import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { usePlaced } from "@/components/branches/placed";
import { Partings } from "@/components/branches/switcher";
import { Conversation, type RowActions } from "@/components/conversation/list";
import { invocationOf, isFolded, isJump, marksOf, type Row, rowsOf } from "@/components/conversation/rows";
import { RawEvents } from "@/components/events/raw-events";
import { useTape } from "@/components/places";
import { Branches } from "@/components/session/branches";
import { Composer } from "@/components/session/composer";
import { ExportDialog } from "@/components/session/export-dialog";
import { FindBar } from "@/components/session/find-bar";
import { useFindMarks } from "@/components/session/find-marks";
import { ForkDialog } from "@/components/session/fork-dialog";
import { SessionHeader } from "@/components/session/header";
import { Panels } from "@/components/session/panels";
import { hiddenBy, onlyThread, ThreadBar } from "@/components/session/part";
import { PeoplePanel } from "@/components/session/people";
import { RewindDialog } from "@/components/session/rewind-dialog";
import { ThreadPanels } from "@/components/session/thread-panels";
import { isWide, ViewTabs } from "@/components/session/view-tabs";
import { TerminalTab } from "@/components/terminal/tab";
import { idleShare } from "@/components/transport/axis";
import { Transport } from "@/components/transport/transport";
import { ErrorBox, Loading, Notice } from "@/components/ui";
import { api } from "@/data/api";
import type { Permission } from "@/fold/types";
import { type Deck, type DeckState, useDeck } from "@/hooks/deck";
import { useEarlier, withEarlier } from "@/hooks/earlier";
import { useFind } from "@/hooks/find";
import { useKeys } from "@/hooks/keys";
import { usePresence } from "@/hooks/people";
import { useGoKeys, usePlaybackKeys } from "@/hooks/session-keys";
import { useThrottled } from "@/hooks/tick";
import { mostPanes, type Panel, type SessionSearch, type View, views } from "@/router/search";

const route = getRouteApi("/s/$id");
const viewLabels: Record<View, string> = {
  conversation: "Conversation",
  events: "Events",
  terminal: "Terminal",
  branches: "Branches",
};

export function SessionPage() {
  const { id } = route.useParams();
  // A session has a page of its own: nothing is kept from another one.
  return <Session key={id} id={id} />;
}

type Open = { what: "rewind"; invocation: string } | { what: "fork"; at: number } | { what: "export" };

function Session({ id }: { id: string }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [deck, state] = useDeck(id, search.at);
  const entry = useQuery({
    queryKey: ["session", id, useThrottled(state.head, 1000)],
    queryFn: ({ signal }) => api.session(id, { signal }),
    placeholderData: (old) => old,
    retry: false,
  });
  const presence = usePresence(deck, state);
  const [dialog, setDialog] = useState<Open>();
  const [said, say] = useState("");
  const { view, index, live, at } = state;
  const shown = search.view ?? "conversation";
  const panel = search.panel ?? "tools";
  const [panelOpen, setPanelOpen] = useState(() => isWide() || search.panel !== undefined);
  const [zen, setZen] = useZen();
  const [cutChosen, setCut] = useState<boolean>();
  const cut = cutChosen ?? idleShare(index?.duration_ms ?? 0, index?.gaps ?? []) > 0.5;
  const epoch = Date.parse(index?.first_at ?? "") || state.timeMs;

  const set = useCallback(
    (s: Partial<SessionSearch>, replace = true) =>
      void navigate({ search: (old: SessionSearch) => ({ ...old, ...s }), replace }),
    [navigate],
  );
  useAtInUrl(deck, state, search.at, set);
  useEffect(() => {
    document.title = `${view?.session.title || id} · Tapedeck`;
  }, [view?.session.title, id]);

  const thread = search.thread;
  const panes = search.pane ?? [];
  const jumps = index?.markers.filter(isJump).length ?? 0;
  const earlier = useEarlier(id, view, jumps);
  const parts = useMemo(
    () => view && onlyThread(withEarlier(view, earlier.parts), thread),
    [view, earlier.parts, thread],
  );
  const marks = useMemo(() => marksOf(index?.markers ?? [], at, thread), [index, at, thread]);
  const rows = useMemo(() => (parts ? rowsOf(parts, marks) : []), [parts, marks]);
  const placed = usePlaced(id, index, rows, at);
  // Only the newest of all can be undone on its own.
  const newest = index?.markers.findLast(isJump)?.offset;
  const hidden = useMemo(() => hiddenBy(marks, deck), [marks, deck]);
  const [selected, select] = useState<string>();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback((key: string) => {
    setOpen((o) => {
      const next = new Set(o);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  }, []);

  const onRow = useCallback((row: Row) => {
    select(row.key);
    if (isFolded(row)) setOpen((o) => new Set(o).add(row.key));
  }, []);
  const find = useFind({ id, head: state.head, thread, rows, seeking: state.seeking, onSeek: deck.seek, onRow });
  const lines = useRef<HTMLDivElement>(null);
  useFindMarks(lines, find.open ? find.q : undefined, rows.find((r) => r.key === selected)?.offset);

  const undo = useMutation({
    mutationFn: (marker?: string) => api.undo(id, marker),
    onSuccess: () => say("It is back"),
  });
  const clear = useMutation({
    mutationFn: (t: string) => api.clear(id, t),
    onSuccess: () => say("Cleared; Undo brings it back"),
  });
  const mark = useMutation({
    mutationFn: (offset: number) => api.append(id, { type: "bookmark.added", data: { offset } }),
    onSuccess: () => say("A bookmark is set"),
  });
  const link = useCallback((offset: number) => {
    const url = new URL(location.href);
    url.searchParams.set("at", String(offset));
    void navigator.clipboard?.writeText(url.href).then(
      () => say("The link is copied"),
      () => say("The browser does not let the link be copied"),
    );
  }, []);
  const undoMutate = undo.mutate;
  const first = index?.invocations[0]?.invocation;
  const noRewind = useCallback(
    (invocation?: string) => {
      if (!live) return "go live first";
      if (!invocation) return "it belongs to no turn";
      if (invocation === first) return "there is nothing before the first turn";
      return undo.isPending ? "wait for what is under way" : undefined;
    },
    [live, first, undo.isPending],
  );
  const rewind = useCallback(
    (invocation?: string) => {
      const not = noRewind(invocation);
      if (not) say(`It cannot be rewound to here: ${not}`);
      else if (invocation) setDialog({ what: "rewind", invocation });
    },
    [noRewind],
  );
  const actions = useMemo<RowActions>(
    () => ({
      onRewind: rewind,
      noRewind,
      onCompare: (m) => void navigate({ to: "/compare", search: { a: id, at_a: m.offset, b: id } }),
      onFork: (offset) => setDialog({ what: "fork", at: offset }),
      onLink: link,
      onSeek: (offset) => deck.seek(offset),
      onUndo: () => undoMutate(undefined),
      onAnswer: (p: Permission, option) => api.answer(id, p, option),
    }),
    [deck, id, link, undoMutate, rewind, noRewind, navigate],
  );

  const lookFor = () => {
    if (shown === "branches") return false;
    if (shown === "conversation") return find.start();
    document.getElementById("event-search")?.focus();
  };
  const chosen = rows.find((r) => r.key === selected);
  const walk = (by: number) => {
    const i = rows.findIndex((r) => r.key === selected);
    const to = i < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, i + by));
    select(rows[to]?.key);
  };
  useGoKeys({
    c: () => set({ view: undefined }),
    e: () => set({ view: "events" }),
    t: () => set({ view: "terminal" }),
    b: () => set({ view: "branches" }),
    s: () => void navigate({ to: "/" }),
  });
  usePlaybackKeys(deck, state);
  useTape({ index, head: state.head, seek: deck.seek, seekTime: deck.seekTime });
  useKeys({
    a: () => setCut(!cut),
    j: () => walk(1),
    k: () => walk(-1),
    Enter: () => (chosen && isFolded(chosen) ? toggle(chosen.key) : false),
    o: () => chosen && set({ view: "events" }),
    y: () => link(at),
    m: () => mark.mutate(at - 1),
    r: () => (chosen ? rewind(invocationOf(chosen)) : false),
    b: () => setDialog({ what: "fork", at: chosen ? chosen.offset + 1 : at }),
    R: () => document.getElementById("resume")?.click(),
    p: () => setPanelOpen((o) => !o),
    z: () => setZen((z) => !z),
    w: () => document.getElementById("composer")?.focus(),
    "/": lookFor,
    "Ctrl+f": lookFor,
    F3: () => (find.open ? find.go(1) : lookFor()),
    "Shift+F3": () => find.open && find.go(-1),
    Escape: () => {
      find.stop();
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      select(undefined);
    },
  });

  if (state.error && !view)
    return (
      <div className="mx-auto max-w-2xl p-8">
        <ErrorBox error={state.error} onRetry={() => location.reload()} />
      </div>
    );
  if (!view) return <Loading what="the session" />;
  const run = view.runs.findLast((r) => r.thread === (thread ?? "main"));
  const failed = [undo, clear, mark].find((m) => m.isError);
  return (
    <div className="flex h-full flex-col">
      <SessionHeader
        id={id}
        info={view.session}
        entry={entry.data}
        head={state.head}
        live={live}
        connection={state.connection}
        onReconnect={deck.reconnect}
        onExport={() => setDialog({ what: "export" })}
        presence={presence}
        onPeople={() => {
          setPanelOpen(true);
          set({ view: undefined, panel: "people" });
        }}
      />
      <ViewTabs
        names={views}
        labels={viewLabels}
        current={shown}
        onChange={(v) => set({ view: v === "conversation" ? undefined : v }, false)}
        head={state.head}
        panelOpen={panelOpen}
        onPanel={() => setPanelOpen((o) => !o)}
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
            {rows.length === 0 ? (
              <div className="flex-1">
                <Notice title="Nothing has been said yet">
                  {live ? "Give the agent a task below." : "At this moment the conversation was empty."}
                </Notice>
              </div>
            ) : (
              <Partings value={placed}>
                <Conversation
                  rows={rows}
                  epoch={epoch}
                  actions={actions}
                  newest={live ? newest : undefined}
                  selected={selected}
                  onSelect={select}
                  open={open}
                  onToggle={toggle}
                  following
                  busy={state.seeking}
                  earlier={earlier.left > 0 ? { n: earlier.left, load: earlier.load, busy: earlier.busy } : undefined}
                />
              </Partings>
            )}
            <Composer
              id={id}
              thread={thread ?? "main"}
              session={view.session}
              run={run}
              live={live}
              onLive={deck.goLive}
            />
          </div>
        )}
        {shown === "events" && (
          <RawEvents
            id={id}
            head={state.head}
            at={at}
            live={live}
            epoch={epoch}
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
              onUndo={(m) => undo.mutate(m)}
              busy={undo.isPending}
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
            onClear={live ? (t) => clear.mutate(t) : undefined}
          />
        )}
        {panelOpen && !zen && shown === "conversation" && parts && (
          <Panels
            id={id}
            view={{ ...parts, threads: view.threads }}
            epoch={epoch}
            head={state.head}
            panel={panel}
            onPanel={(p: Panel) => set({ panel: p === "tools" ? undefined : p })}
            thread={thread}
            onThread={(t) => set({ thread: t }, false)}
            onPane={(t) => set({ pane: [...panes.filter((p) => p !== t), t].slice(-mostPanes) })}
            onSeek={deck.seek}
            onClear={live ? (t) => clear.mutate(t) : undefined}
            people={<PeoplePanel deck={deck} state={state} presence={presence} />}
            peopleCount={live ? presence.people.length : 0}
          />
        )}
      </div>
      <Transport deck={deck} state={state} cut={cut} onCut={setCut} />
      <p role="status" className="sr-only">
        {said}
      </p>
      <Toast text={said} onGone={() => say("")} />
      {dialog?.what === "rewind" && (
        <RewindDialog
          id={id}
          invocation={dialog.invocation}
          first={index?.invocations.find((i) => i.invocation === dialog.invocation)?.first}
          view={withEarlier(view, earlier.parts)}
          onClose={() => setDialog(undefined)}
          onDone={() => setDialog(undefined)}
          onFork={(offset) => setDialog({ what: "fork", at: offset })}
        />
      )}
      {dialog?.what === "fork" && (
        <ForkDialog
          id={id}
          title={view.session.title}
          at={dialog.at}
          onClose={() => setDialog(undefined)}
          onDone={(made) => void navigate({ to: "/s/$id", params: { id: made.id }, search: {} })}
        />
      )}
      {dialog?.what === "export" && (
        <ExportDialog id={id} at={live ? undefined : at} onClose={() => setDialog(undefined)} />
      )}
    </div>
  );
}

/**
 * The URL says where the playhead is, and the other way round. While it plays
 * the URL stays as it is; where it stops can be shared.
 */
function useAtInUrl(
  deck: Deck,
  { live, playing, at }: DeckState,
  asked: number | undefined,
  set: (s: Partial<SessionSearch>) => void,
): void {
  const told = useRef(asked);
  useEffect(() => {
    if (asked === told.current) return;
    told.current = asked; // a link, or the browser's way back
    if (asked === undefined) deck.goLive();
    else deck.seek(asked);
  }, [asked, deck]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: live, the offset is not in the URL
  useEffect(() => {
    if (playing) return;
    const t = setTimeout(() => {
      told.current = live ? undefined : at;
      set({ at: told.current });
    }, 250);
    return () => clearTimeout(t);
  }, [live, playing, live ? 0 : at, set]);
}

/** Whether only the conversation is shown; the style sheet hides the rest. */
function useZen() {
  const [zen, set] = useState(false);
  useEffect(() => {
    if (zen) document.documentElement.dataset.zen = "";
    return () => {
      delete document.documentElement.dataset.zen;
    };
  }, [zen]);
  return [zen, set] as const;
}

function Toast({ text, onGone }: { text: string; onGone: () => void }) {
  useEffect(() => {
    if (!text) return;
    const t = setTimeout(onGone, 3000);
    return () => clearTimeout(t);
  }, [text, onGone]);
  if (!text) return null;
  return (
    <div
      aria-hidden="true"
      className="fixed bottom-36 left-1/2 z-20 -translate-x-1/2 rounded-full bg-text px-4 py-1.5 text-[13px] text-bg shadow-lg"
    >
      {text}
    </div>
  );
}
