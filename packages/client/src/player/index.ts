// @tapedeck/client/player: a playhead over the events of a session.
export { type ChannelBounds, ChannelLog, type ChannelSource } from "./channel.ts";
export { createPlayer, type Player, type PlayerOptions, type Recording, recorded } from "./create.ts";
export { Deck, idleMs } from "./deck.ts";
export * from "./find.ts";
export { eventsPerSecond } from "./positions.ts";
export type { DeckOptions, DeckState, Span } from "./state.ts";
