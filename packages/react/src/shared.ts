import type { Client } from "@tapedeck/client";
import { createPlayer, type Player } from "@tapedeck/client/player";
import { useEffect, useMemo } from "react";

interface Entry {
  player: Player;
  users: number;
  closing?: ReturnType<typeof setTimeout> | undefined;
}

const players = new WeakMap<Client, Map<string, Entry>>();

function entryOf(client: Client, id: string): Entry {
  let byId = players.get(client);
  if (!byId) {
    byId = new Map();
    players.set(client, byId);
  }
  let entry = byId.get(id);
  if (!entry) {
    entry = { player: createPlayer(client.session(id)), users: 0 };
    byId.set(id, entry);
  }
  return entry;
}

/** Opens the player with its first user. Returns how to leave it; the last one closes it. */
function enter(client: Client, id: string): () => void {
  const entry = entryOf(client, id);
  clearTimeout(entry.closing);
  const wasOpen = entry.closing !== undefined || entry.users > 0;
  entry.closing = undefined;
  entry.users++;
  if (!wasOpen) entry.player.open();
  return () => {
    entry.users--;
    if (entry.users > 0) return;
    // React in its strict mode leaves and enters at once, and so does a change of page.
    entry.closing = setTimeout(() => {
      entry.player.close();
      players.get(client)?.delete(id);
    }, 0);
  };
}

/** The player of a session. All hooks of a page share it, with its one stream. */
export function useSharedPlayer(client: Client, id: string): Player {
  const player = useMemo(() => entryOf(client, id).player, [client, id]);
  useEffect(() => enter(client, id), [client, id]);
  return player;
}
