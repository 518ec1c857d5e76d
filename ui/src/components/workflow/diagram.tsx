import "bpmn-js/dist/assets/diagram-js.css";
import "./diagram.css";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { IconButton, Notice, Spinner } from "../ui";
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
    let gone = false;
    setFailed(false);
    d.open(xml, process).then(
      () => gone || setDrawing(d),
      () => gone || setFailed(true),
    );
    return () => {
      gone = true;
      setDrawing(undefined);
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
  if (failed)
    return (
      <Notice title="This diagram cannot be drawn">
        The file does not say where its elements are. The list shows all of them.
      </Notice>
    );
  return (
    <section aria-label="Diagram" className="workflow-diagram relative h-full min-h-0 overflow-hidden">
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
          </div>
        </>
      )}
    </section>
  );
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
