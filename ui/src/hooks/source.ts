import { createContext, useContext } from "react";
import { api } from "@/data/api";

/** Where what is beside the player comes from: the server or, in a recording, the page itself. */
export interface Source extends Pick<typeof api, "session" | "events" | "summary" | "search"> {
  /** There is no server to ask. */
  recording?: boolean;
}

export const SourceContext = createContext<Source>(api);

export const useSource = (): Source => useContext(SourceContext);
