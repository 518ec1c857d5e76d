// The chat in jsdom, against the real program. TAPEDECK_BIN is its path.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createClient } from "@tapedeck/client";
import { TapedeckProvider } from "@tapedeck/react";
import { cleanup, fireEvent, render, waitFor } from "@testing-library/react";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Chat } from "./chat.tsx";

const data = mkdtempSync(join(tmpdir(), "tapedeck-example-"));
let server: ChildProcess;
let url = "";

beforeAll(async () => {
  const args = ["serve", "--data", data, "--listen", "127.0.0.1:0"];
  server = spawn(process.env.TAPEDECK_BIN ?? "../../bin/tapedeck", args, { stdio: ["ignore", "pipe", "pipe"] });
  url = await new Promise((found, failed) => {
    server.on("exit", () => failed(new Error("the server ended before it served")));
    for (const out of [server.stdout, server.stderr])
      createInterface({ input: out! }).on("line", (line) => {
        const address = line.match(/http:\/\/[\d.]+:\d+/);
        if (address) found(address[0]);
      });
  });
});

afterAll(async () => {
  const ended = new Promise((done) => server.on("exit", done));
  server.kill("SIGTERM");
  await ended;
  rmSync(data, { recursive: true, force: true });
});

test("a task is answered on the page, and a second page shows the same", async () => {
  const client = createClient({ url });
  const { id } = await client.create({ agent: "hello" });
  const page = () =>
    render(
      <TapedeckProvider client={client}>
        <Chat id={id} />
      </TapedeckProvider>,
    );
  const first = page();
  fireEvent.change(first.getByLabelText("Task"), { target: { value: "Say hello" } });
  fireEvent.click(first.getByText("Send"));
  await waitFor(() => first.getByText("complete, caught-up"), { timeout: 90_000 });
  const said = [...first.getByLabelText("Conversation").children].map((li) => li.textContent);
  expect(said[0]).toBe("user: Say hello");
  expect(said.filter((text) => /^assistant: .{5}/.test(text ?? "")).length).toBeGreaterThan(0);
  const folded = await client.session(id).snapshot();
  expect(said.length).toBe(folded.messages.length + folded.tool_calls.length);
  cleanup();
  const second = page();
  await waitFor(() => second.getByText("complete, caught-up"), { timeout: 90_000 });
  expect([...second.getByLabelText("Conversation").children].map((li) => li.textContent)).toEqual(said);
  cleanup();
});

test("Stop cancels the run, and what was said stays", async () => {
  const client = createClient({ url });
  const { session } = await client.run({ task: "Take your time", agent: "long" });
  const page = render(
    <TapedeckProvider client={client}>
      <Chat id={session.id} />
    </TapedeckProvider>,
  );
  await waitFor(() => expect(page.getByLabelText("Conversation").textContent).toContain("assistant: "), {
    timeout: 90_000,
  });
  fireEvent.click(page.getByText("Stop"));
  await waitFor(() => page.getByText("cancelled, caught-up"), { timeout: 90_000 });
  expect(page.getByLabelText("Conversation").textContent).toContain("assistant: ");
  cleanup();
});
