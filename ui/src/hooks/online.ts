import { useSyncExternalStore } from "react";

function subscribe(l: () => void) {
  addEventListener("online", l);
  addEventListener("offline", l);
  return () => {
    removeEventListener("online", l);
    removeEventListener("offline", l);
  };
}

/** Whether the browser reports a network connection. */
export function useOnline(): boolean {
  return useSyncExternalStore(subscribe, () => navigator.onLine);
}
