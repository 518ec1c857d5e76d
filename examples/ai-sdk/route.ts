import { refusal } from "@tapedeck/ai-sdk/server";
import { convertToModelMessages, streamText } from "ai";
import { model } from "./model.ts";
import { td } from "./tapedeck.ts";

export async function POST(request: Request) {
  const { id, messages, trigger } = await request.json();
  const run = await td.run(id, { messages, trigger, headers: request.headers }).catch(refusal);
  if (run instanceof Response) return run;
  const result = streamText({
    model,
    messages: await convertToModelMessages(messages),
    abortSignal: run.signal,
  });
  return run.respond(result);
}
