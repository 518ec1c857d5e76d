/** Calls f with the next frame. Outside of a page, and on a hidden one, there are no frames: it uses a timer. */
export function nextFrame(f: () => void): void {
  if (typeof requestAnimationFrame === "undefined") setTimeout(f, 16);
  else if (globalThis.document?.hidden) setTimeout(f, 250);
  else requestAnimationFrame(f);
}
