import { useSyncExternalStore } from "react";

/** Whether the page is as a media query has it, also after it was turned or made wider. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (told) => {
      const list = matchMedia(query);
      list.addEventListener("change", told);
      return () => list.removeEventListener("change", told);
    },
    () => matchMedia(query).matches,
  );
}
