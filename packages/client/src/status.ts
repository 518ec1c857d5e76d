import type { Status } from "./wire.ts";

/** Whether a session of this status has an open run: it runs, or it waits for a person. */
export const hasOpenRun = (status: Status | undefined): boolean => status === "running" || status === "waiting";
