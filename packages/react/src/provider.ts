import type { Client } from "@tapedeck/client";
import { createContext, createElement, type ReactNode, useContext } from "react";

const Context = createContext<Client | undefined>(undefined);

/** The client of the hooks below it. */
export function TapedeckProvider({ client, children }: { client: Client; children?: ReactNode }): ReactNode {
  return createElement(Context.Provider, { value: client }, children);
}

/** The client of the nearest provider. */
export function useClient(): Client {
  const client = useContext(Context);
  if (!client) throw new Error("there is no client: put <TapedeckProvider client={createClient(…)}> around this");
  return client;
}
