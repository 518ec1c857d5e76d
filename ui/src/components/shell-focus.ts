/**
 * After a click with a pointer a button does not keep the focus, so that Space
 * goes on to play and pause. Who uses the keyboard keeps it.
 */
export function letGo(): () => void {
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
