import { type ComponentType, lazy } from "react";

const longest = 5_000; // ms between two attempts

/**
 * A component whose script is loaded when it is first shown. If the server cannot be reached
 * at that moment, the load is tried again until it succeeds: an error would replace the page.
 */
// biome-ignore lint/suspicious/noExplicitAny: the props of any component, as React's lazy has it
export function lazyPart<T extends ComponentType<any>>(load: () => Promise<{ default: T }>) {
  return lazy(() => loaded(load));
}

export async function loaded<T>(load: () => Promise<T>): Promise<T> {
  for (let wait = 250; ; wait = Math.min(2 * wait, longest)) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}
