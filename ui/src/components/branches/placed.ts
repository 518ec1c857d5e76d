import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { ReplayIndex } from "@/fold/types";
import { useBranches } from "@/hooks/branches";
import type { Row } from "../conversation/rows";
import { partingsOf, place, type Way } from "./partings";

/** Where the conversation at the playhead parts from others, by the keys of its rows. */
export function usePlaced(id: string, index: ReplayIndex | undefined, rows: Row[], at: number) {
  const { data } = useBranches(id, index);
  const partings = useMemo(() => partingsOf(data?.branches ?? []), [data]);
  // While it plays or streams there are new rows with each frame.
  const playhead = partings.length > 0 ? at : 0;
  const navigate = useNavigate();
  const onGo = useCallback(
    (to: Way) => void navigate({ to: "/s/$id", params: { id: to.session }, search: { at: to.at } }),
    [navigate],
  );
  return useMemo(
    () => ({ placed: place(partings, partings.length > 0 ? rows : [], playhead), onGo }),
    [partings, rows, playhead, onGo],
  );
}
