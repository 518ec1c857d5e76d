import { useNavigate } from "@tanstack/react-router";
import type { ReplayIndex } from "@tapedeck/client";
import { useCallback, useMemo } from "react";
import { useBranches } from "@/hooks/branches";
import type { Row } from "../conversation/rows";
import { type Alternative, branchPointsOf, place } from "./branch-points";

/** The branch points of the conversation at the playhead, by the keys of its rows. */
export function usePlacedBranchPoints(id: string, index: ReplayIndex | undefined, rows: Row[], at: number) {
  const { data } = useBranches(id, index);
  const branchPoints = useMemo(() => branchPointsOf(data?.branches ?? []), [data]);
  // While it plays or streams, each frame has new rows: do not place them without need.
  const playhead = branchPoints.length > 0 ? at : 0;
  const navigate = useNavigate();
  const onGo = useCallback(
    (to: Alternative) => void navigate({ to: "/s/$id", params: { id: to.session }, search: { at: to.at } }),
    [navigate],
  );
  return useMemo(
    () => ({ placed: place(branchPoints, branchPoints.length > 0 ? rows : [], playhead), onGo }),
    [branchPoints, rows, playhead, onGo],
  );
}
