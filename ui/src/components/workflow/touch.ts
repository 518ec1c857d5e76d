/** What fingers move. */
interface Moved {
  drag(dx: number, dy: number): void;
  zoom(by: number): void;
}

interface Point {
  x: number;
  y: number;
}

/** One finger drags, and two fingers zoom: bpmn-js knows only the mouse. It returns how to stop that. */
export function dragByTouch(el: HTMLElement, drawing: Moved): () => void {
  const fingers = new Map<number, Point>();
  const apart = () => {
    const [a, b] = [...fingers.values()];
    return a && b ? Math.hypot(a.x - b.x, a.y - b.y) : 0;
  };
  const down = (e: PointerEvent) => {
    if (e.pointerType === "touch") fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
  };
  const move = (e: PointerEvent) => {
    const last = fingers.get(e.pointerId);
    if (!last) return;
    const before = apart();
    fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    if (fingers.size === 1) drawing.drag(e.clientX - last.x, e.clientY - last.y);
    else if (before > 0) drawing.zoom(apart() / before);
  };
  const up = (e: PointerEvent) => fingers.delete(e.pointerId);
  el.addEventListener("pointerdown", down);
  el.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"] as const) el.addEventListener(name, up);
  return () => {
    el.removeEventListener("pointerdown", down);
    el.removeEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"] as const) el.removeEventListener(name, up);
  };
}
