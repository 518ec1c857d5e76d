import type { ReplayIndex } from "@tapedeck/client";
import { useEffect } from "react";
import { clock } from "./format";

/** The open session, for the palette. */
export interface OpenSession {
  index: ReplayIndex | undefined;
  head: number;
  seek: (at: number) => void;
  seekPosition: (ms: number) => void;
}

let open: OpenSession | undefined;

export const openSession = () => open;

/** Makes a session available to the palette while its page is open. */
export function useOpenSession(session: OpenSession): void {
  useEffect(() => {
    open = session;
    return () => {
      if (open === session) open = undefined;
    };
  });
}

export interface Place {
  key: string;
  name: string;
  hint: string;
  go: () => void;
}

const turnForm = /^(?:t|turn)\s*(\d+)$/i;
const offsetForm = /^(?:#|o|offset|event)\s*(\d+)$/i;
const timeForm = /^(?:(?:(\d+):)?(\d+):(\d\d(?:\.\d+)?)|(?:(\d+)h\s*)?(?:(\d+)m\s*)?(?:(\d+(?:\.\d+)?)s)?)$/;

/** The places that a text can mean: "3" is a turn or an offset; "turn 3", "#412", "1:35", "95s". */
export function placesOf(text: string, session: OpenSession): Place[] {
  const t = text.trim();
  const number = /^\d+$/.test(t) ? Number(t) : undefined;
  const turn = number ?? numberIn(turnForm, t);
  const offset = number ?? numberIn(offsetForm, t);
  const places = [turnPlace(turn, session), offsetPlace(offset, session)];
  if (number === undefined) places.push(timePlace(secondsIn(t), session));
  return places.filter((p) => p !== undefined);
}

function numberIn(form: RegExp, text: string): number | undefined {
  const found = text.match(form)?.[1];
  return found === undefined ? undefined : Number(found);
}

function turnPlace(n: number | undefined, { index, seek }: OpenSession): Place | undefined {
  const found = n === undefined ? undefined : index?.invocations[n - 1 - (index.earlier ?? 0)];
  if (!found) return undefined;
  return { key: "turn", name: `Turn ${n}`, hint: found.title ?? found.invocation, go: () => seek(found.first + 1) };
}

/** The playhead goes behind the event, so that the event is shown. */
function offsetPlace(n: number | undefined, { head, seek }: OpenSession): Place | undefined {
  if (n === undefined || n >= head) return undefined;
  return {
    key: "offset",
    name: `Offset ${n.toLocaleString("en")}`,
    hint: `of ${head.toLocaleString("en")}`,
    go: () => seek(n + 1),
  };
}

function timePlace(s: number | undefined, { index, seekPosition }: OpenSession): Place | undefined {
  const length = index?.duration_ms ?? 0;
  if (s === undefined || index?.axis !== "time" || s * 1000 > length) return undefined;
  return {
    key: "time",
    name: clock(s * 1000, !Number.isInteger(s)),
    hint: `of ${clock(length)}`,
    go: () => seekPosition(s * 1000),
  };
}

function secondsIn(text: string): number | undefined {
  const m = text === "" ? null : text.match(timeForm);
  if (!m) return undefined;
  const [, h1, m1, s1, h2, m2, s2] = m.map((x) => Number(x ?? 0));
  return (h1! + h2!) * 3600 + (m1! + m2!) * 60 + s1! + s2!;
}
