import { createClient } from "@tapedeck/client";
import { TapedeckProvider } from "@tapedeck/react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.tsx";

const client = createClient({ url: location.origin });
// The session is in the address, so a reload and a second device show the same.
const id = location.hash.slice(1) || (await client.create({ title: "A chat" })).id;
location.hash = id;
createRoot(document.getElementById("root") as HTMLElement).render(
  <TapedeckProvider client={client}>
    <Chat id={id} />
  </TapedeckProvider>,
);
