// The response of GET /diff, see docs/http.md.
import type { Status } from "../fold/types";

export interface DiffSession {
  id: string;
  title?: string;
  at: number;
  turns: number;
}

export interface DiffItem {
  offset: number;
  kind: "message" | "tool";
  name: string; // the role, or the tool
  text?: string;
  arguments?: string;
  status: Status;
  duration_ms?: number;
}

export interface DiffSide {
  offset: number;
  thread: string;
  invocation?: string;
  messages: DiffItem[];
  tools: DiffItem[];
}

export interface DiffLine {
  op: "-" | "+" | " " | "@";
  text: string;
}

export interface DiffChange {
  op: "added" | "removed" | "changed";
  kind: "message" | "tool";
  name: string;
  a_offset?: number;
  b_offset?: number;
  text?: DiffLine[];
  arguments?: DiffLine[];
  status?: DiffLine[];
}

export interface DiffTurn {
  turn: number;
  a: DiffSide | null;
  b: DiffSide | null;
  same: boolean;
  changes?: DiffChange[];
}

export interface Diff {
  a: DiffSession;
  b: DiffSession;
  shared_offset: number;
  common_turns: number;
  same: boolean;
  turns: DiffTurn[];
}
