import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { api } from "@/client";
import { announce, type Notice } from "./notices";

/** How many requests of one action run at once. */
const atOnce = 4;

/** Does something with each session. It continues after a failure, and returns the failures. */
export async function forEach(ids: string[], act: (id: string) => Promise<unknown>): Promise<Map<string, Error>> {
  const failed = new Map<string, Error>();
  const left = [...ids];
  const work = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      const one = id;
      await act(one).catch((err: Error) => failed.set(one, err));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return failed;
}

/** Changes sessions, says what came of it, and renews what the page shows of them. */
export function useChange() {
  const queries = useQueryClient();
  return useCallback(
    async (ids: string[], act: (id: string) => Promise<unknown>, done: Notice): Promise<boolean> => {
      const failed = await forEach(ids, act);
      for (const queryKey of [["sessions-fresh"], ["sessions"], ["session"], ["palette"]])
        void queries.invalidateQueries({ queryKey });
      const [first] = failed;
      if (!first) announce(done);
      else {
        const more = failed.size > 1 ? ` and ${failed.size - 1} more` : "";
        announce({ text: `${first[0]}${more} did not change: ${first[1].message}.`, bad: true }, 10_000);
      }
      return !first;
    },
    [queries],
  );
}

export const setLabel = (name: string, on: boolean) => (id: string) => api.label(id, { [name]: on ? "true" : null });
