// @tapedeck/client/record: recording a run of an agent in this program.
export { defaultLeaseMs, Recording, type RecordingOptions, type RunStatus } from "./recording.ts";
export { type AskedOption, type AskOptions, Run, type RunOptions, record } from "./run.ts";
