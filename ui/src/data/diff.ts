// The response of GET /diff, see docs/http.md. wire.ts has the types.
import type * as wire from "../wire";

export type Diff = wire.Diff;
export type DiffChange = wire.DiffChange;
export type DiffItem = wire.DiffItem;
export type DiffLine = wire.DiffLine;
export type DiffSession = wire.DiffSession;
export type DiffSide = wire.DiffSide;
export type DiffTurn = wire.DiffTurn;
