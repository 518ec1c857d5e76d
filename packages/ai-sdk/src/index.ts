// @tapedeck/ai-sdk: durable chats for useChat of the AI SDK.
export { type ErrorKind, TapedeckError } from "@tapedeck/client";
export type { Unsent } from "./active.ts";
export { type Place, placeOf } from "./seen.ts";
export { type Reconnecting, TapedeckTransport, type TapedeckTransportOptions } from "./transport.ts";
