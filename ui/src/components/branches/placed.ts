import { useMemo } from "react";
import type { ReplayIndex } from "@/fold/types";
import { useBranches } from "@/hooks/branches";
import type { Row } from "../conversation/rows";
import { partingsOf, place } from "./partings";

/** Where the conversation at the playhead parts from others, by the keys of its rows. */
export function usePlaced(id: string, index: ReplayIndex | undefined, rows: Row[], at: number) {
  const { data } = useBranches(id, index);
  const partings = useMemo(() => partingsOf(data?.branches ?? []), [data]);
  // While it plays or streams there are new rows with each frame.
  const playhead = partings.length > 0 ? at : 0;
  return useMemo(
    () => ({ id, placed: place(partings, partings.length > 0 ? rows : [], playhead) }),
    [id, partings, rows, playhead],
  );
}
