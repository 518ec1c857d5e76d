import { TapedeckTransport } from "@tapedeck/ai-sdk";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.tsx";

const transport = new TapedeckTransport({ api: "/api/chat", version: 7 });
// The chat is in the address, so a reload and a second device show the same.
const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;
const root = createRoot(document.getElementById("root") as HTMLElement);

/** The messages of the chat. While the server is away, the page says so and asks again. */
async function load() {
  for (;;) {
    try {
      return await transport.messages(id);
    } catch (error) {
      root.render(<p role="alert">{`${(error as Error).message}. Trying again …`}</p>);
      await new Promise((later) => setTimeout(later, 2000));
    }
  }
}
const messages = await load();
root.render(<Chat id={id} messages={messages} transport={transport} />);
