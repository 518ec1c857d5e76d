import { createContext, useContext } from "react";
import { api } from "@/client";

/** The data source of the components other than the player: the server or, in a recording, the page itself. */
export interface Source extends Pick<typeof api, "session" | "events" | "summary" | "search"> {
  /** This is a recording, without a server. */
  recording?: boolean;
}

export const SourceContext = createContext<Source>(api);

export const useSource = (): Source => useContext(SourceContext);
