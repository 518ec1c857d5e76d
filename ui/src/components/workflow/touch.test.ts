// @vitest-environment jsdom
import { expect, it } from "vitest";
import { dragByTouch } from "./touch";

function finger(el: HTMLElement, type: string, pointerId: number, x: number, y: number, pointerType = "touch") {
  const e = new MouseEvent(type, { clientX: x, clientY: y });
  el.dispatchEvent(Object.assign(e, { pointerId, pointerType }));
}

it("one finger drags, two fingers zoom, and a mouse does neither", () => {
  const el = document.createElement("div");
  const moves: string[] = [];
  const stop = dragByTouch(el, {
    drag: (dx, dy) => moves.push(`drag ${dx} ${dy}`),
    zoom: (by) => moves.push(`zoom ${by}`),
  });
  finger(el, "pointerdown", 9, 0, 0, "mouse");
  finger(el, "pointermove", 9, 5, 5, "mouse");
  finger(el, "pointerdown", 1, 0, 0);
  finger(el, "pointermove", 1, 10, 5);
  finger(el, "pointerdown", 2, 10, 105);
  finger(el, "pointermove", 2, 10, 205);
  finger(el, "pointerup", 2, 10, 205);
  finger(el, "pointermove", 1, 11, 5);
  expect(moves).toEqual(["drag 10 5", "zoom 2", "drag 1 0"]);
  stop();
  finger(el, "pointermove", 1, 20, 20);
  expect(moves).toHaveLength(3);
});
