import { TapedeckTransport } from "@tapedeck/ai-sdk";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.tsx";

const transport = new TapedeckTransport({ api: "/api/chat", version: 7 });
// The chat is in the address, so a reload and a second device show the same.
const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;
const messages = await transport.messages(id);
createRoot(document.getElementById("root") as HTMLElement).render(
  <Chat id={id} messages={messages} transport={transport} />,
);
