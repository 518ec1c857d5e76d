// @tapedeck/react: hooks for sessions, without styles.
export { type Loaded, type RefreshOptions, type UseSessions, useBranches, useSessions } from "./lists.ts";
export { shallowEqual, usePlayer } from "./player.ts";
export { type PresenceOptions, type UsePresence, usePresence } from "./presence.ts";
export { TapedeckProvider, useClient } from "./provider.ts";
export { type SessionActions, type SessionState, type UseSession, useSession } from "./session.ts";
