import type { Connection } from "@tapedeck/client";
import { useCallback, useEffect, useState } from "react";
import { announce } from "./notices";

/** A key for what shows a session: it changes when the session gets another history. `onReplaced` says that it has. */
export function useLife(id: string): [key: string, onReplaced: () => void] {
  const [lives, setLives] = useState(0);
  return [`${id} ${lives}`, useCallback(() => setLives((n) => n + 1), [])];
}

/** Tells the user, and the caller, that the session was created again or restored, so that what is shown is of the past. */
export function useReplaced(connection: Connection, onReplaced: () => void): void {
  const isReplaced = connection.error?.kind === "replaced";
  useEffect(() => {
    if (!isReplaced) return;
    announce({ text: "This session was created again or restored. The page shows it as it is now." });
    onReplaced();
  }, [isReplaced, onReplaced]);
}
