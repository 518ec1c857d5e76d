import "bpmn-js/dist/assets/diagram-js.css";
import "./diagram.css";
import { type ReactNode, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { IconButton, Notice, Spinner } from "../ui";
import { dragByTouch } from "./touch";
import { Drawing } from "./viewer";

interface Props {
  xml: string;
  process?: string;
  /** The class of each element and flow that has one. */
  classes?: Map<string, string>;
  /** What is shown at the corner of nodes. */
  badges?: Map<string, ReactNode>;
  selected?: string;
  onSelect?: (element: string | undefined) => void;
}

const nothing = new Map<string, never>();

/** The diagram, drawn by bpmn-js. Its link to bpmn.io has to stay visible: the licence asks for it. */
export default function Diagram({ xml, process, classes = nothing, badges = nothing, selected, onSelect }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [drawing, setDrawing] = useState<Drawing>();
  const [failed, setFailed] = useState(false);
  const select = useRef(onSelect);
  useEffect(() => {
    select.current = onSelect;
  });
  useEffect(() => {
    if (!place.current) return;
    const d = new Drawing(place.current, (element) => select.current?.(element));
    const release = dragByTouch(place.current, d);
    let gone = false;
    setFailed(false);
    d.open(xml, process).then(
      () => gone || setDrawing(d),
      () => gone || setFailed(true),
    );
    return () => {
      gone = true;
      setDrawing(undefined);
      release();
      d.destroy();
    };
  }, [xml, process]);
  useEffect(() => drawing?.mark(classes), [drawing, classes]);
  useEffect(() => drawing?.select(selected), [drawing, selected]);
  useEffect(() => {
    const el = place.current;
    if (!drawing || !el) return;
    const observer = new ResizeObserver(() => drawing.resized());
    observer.observe(el);
    return () => observer.disconnect();
  }, [drawing]);
  const large = useFullScreen(drawing, selected ?? busiest(classes), selected);
  if (failed)
    return (
      <Notice title="This diagram cannot be drawn">
        The file does not say where its elements are. The list shows all of them.
      </Notice>
    );
  return (
    <section
      aria-label="Diagram"
      ref={large.box}
      popover={large.on ? "manual" : undefined}
      className={`workflow-diagram overflow-hidden bg-bg ${large.on ? "fixed inset-0 m-0 h-full max-h-none w-full max-w-none touch-none border-0 p-0 text-text" : "relative h-full min-h-0"}`}
    >
      <div
        ref={place}
        className="absolute inset-0"
        onWheel={() => drawing?.moved()}
        onPointerDown={() => drawing?.moved()}
      />
      {!drawing && (
        <p role="status" className="absolute inset-0 flex items-center justify-center gap-2 text-muted">
          <Spinner /> Drawing the diagram…
        </p>
      )}
      {drawing && (
        <>
          <Badges drawing={drawing} badges={badges} />
          <div className="absolute bottom-2 left-2 z-10 flex rounded-md border border-line bg-panel shadow-sm">
            <IconButton icon="plus" label="Zoom in" onClick={() => drawing.zoom(1.25)} />
            <IconButton icon="minus" label="Zoom out" onClick={() => drawing.zoom(0.8)} />
            <IconButton icon="fit" label="Fit the diagram" onClick={() => drawing.fit()} />
            <IconButton
              icon={large.on ? "close" : "full"}
              label={large.on ? "Leave the full screen" : "Show the diagram on the full screen"}
              aria-pressed={large.on}
              onClick={large.toggle}
            />
          </div>
        </>
      )}
    </section>
  );
}

/** The element that a diagram which opens large shows first: what waits for a person, or else what is active. */
function busiest(classes: Map<string, string>): string | undefined {
  const is = (state: string) => [...classes].find(([, c]) => c === `state-${state}`)?.[0];
  return is("waiting") ?? is("active");
}

/** The diagram over the whole page, with an element in its middle, until Escape or until a task opens. */
function useFullScreen(drawing: Drawing | undefined, first: string | undefined, selected: string | undefined) {
  const [on, setOn] = useState(false);
  const box = useRef<HTMLElement>(null);
  const was = useRef(false);
  const toggle = useCallback(() => setOn((o) => !o), []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it opens and closes; then the user moves it
  useLayoutEffect(() => {
    if (!drawing || on === was.current) return;
    was.current = on;
    if (on) box.current?.showPopover?.(); // above the heads and the panel of a task
    drawing.resized();
    if (on && first) drawing.show(first);
    else drawing.fit();
  }, [on, drawing]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the panel of the task is below
  useEffect(() => setOn(false), [selected]);
  useEffect(() => {
    if (!on) return;
    const leave = (e: KeyboardEvent) => {
      if (e.key !== "Escape" || document.querySelector("dialog[open]")) return;
      e.preventDefault(); // or else the page clears its selection
      setOn(false);
    };
    document.addEventListener("keydown", leave, true);
    return () => document.removeEventListener("keydown", leave, true);
  }, [on]);
  return { on, toggle, box };
}

/** One place for each badge, which bpmn-js moves with its element. */
function Badges({ drawing, badges }: { drawing: Drawing; badges: Map<string, ReactNode> }) {
  const names = [...badges.keys()].join(" ");
  const places = useMemo(
    () => new Map(names.split(" ").map((id) => [id, document.createElement("div")] as const)),
    [names],
  );
  useEffect(() => {
    const detach = [...places].filter(([id]) => id && drawing.has(id)).map(([id, el]) => drawing.attach(id, el));
    return () => {
      for (const d of detach) d();
    };
  }, [drawing, places]);
  return [...places].map(([id, el]) => createPortal(badges.get(id), el, id));
}
