import { createTapedeck } from "@tapedeck/ai-sdk/server";

export const td = createTapedeck({ url: process.env.TAPEDECK_URL ?? "http://127.0.0.1:4747" });

// What reloads, second tabs and stops need: in Next.js app/api/chat/[...path]/route.ts. Everybody
// may use every chat here: a real application looks at the session of its user.
export const { GET, POST } = td.routes({ authorize: () => true });
