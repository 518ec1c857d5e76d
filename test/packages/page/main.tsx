import { TapedeckTransport } from "@tapedeck/ai-sdk";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.tsx"; // that of examples/ai-sdk

// The backend of the page has the token of the server. The page asks it for one of its session.
const headers = async () => ({ Authorization: `Bearer ${await (await fetch("/token")).text()}` });
const asked = new URLSearchParams(location.search);
const [api, id] = [asked.get("api") ?? "", asked.get("id") ?? ""];
const transport = new TapedeckTransport({ api, version: 7, headers });
const messages = await transport.messages(id);
createRoot(document.getElementById("root") as HTMLElement).render(
  <Chat id={id} messages={messages} transport={transport} />,
);
