/**
 * Removes the focus from a button after a click with a pointer, so that Space still
 * plays and pauses. A click by keyboard keeps the focus.
 */
export function blurAfterClick(): () => void {
  const onClick = (e: MouseEvent) => {
    const at = document.activeElement;
    if (
      e.detail > 0 &&
      at instanceof HTMLElement &&
      at.matches("button, a, summary, input[type=checkbox]") &&
      !at.closest("dialog, [role=menu]")
    )
      at.blur();
  };
  document.addEventListener("click", onClick);
  return () => document.removeEventListener("click", onClick);
}
