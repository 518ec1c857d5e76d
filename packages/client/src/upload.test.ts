import { beforeEach, expect, test, vi } from "vitest";
import { createClient } from "./client.ts";

const client = createClient({ url: "http://localhost/" });

type On = Record<string, (e: unknown) => void>;

class FakeRequest {
  static last: FakeRequest | undefined;
  opened: string[] = [];
  headers: Record<string, string> = {};
  sent: unknown;
  status = 0;
  responseText = "";
  aborted = false;
  private readonly on: On = {};
  private readonly onUpload: On = {};
  readonly upload = { addEventListener: (type: string, f: (e: unknown) => void) => (this.onUpload[type] = f) };

  constructor() {
    FakeRequest.last = this;
  }

  addEventListener(type: string, f: (e: unknown) => void): void {
    this.on[type] = f;
  }

  open(...how: string[]): void {
    this.opened = how;
  }

  setRequestHeader(name: string, value: string): void {
    this.headers[name] = value;
  }

  send(body: unknown): void {
    this.sent = body;
  }

  abort(): void {
    this.aborted = true;
    this.tell("abort");
  }

  progress(loaded: number, total: number): void {
    this.onUpload.progress?.({ loaded, total });
  }

  answer(status: number, body: unknown): void {
    this.status = status;
    this.responseText = typeof body === "string" ? body : JSON.stringify(body);
    this.tell("load");
  }

  tell(type: string): void {
    this.on[type]?.({});
    this.on.loadend?.({});
  }
}

const file = new Blob(["x"]);
let shares: number[];
let stop: AbortController;
const options = () => ({ format: "auto", signal: stop.signal, onProgress: (s: number) => shares.push(s) });

/** The request, once it has its headers. */
async function sent(): Promise<FakeRequest> {
  await vi.waitFor(() => expect(FakeRequest.last).toBeDefined(), { timeout: 60_000 });
  return FakeRequest.last as FakeRequest;
}

beforeEach(() => {
  FakeRequest.last = undefined;
  shares = [];
  stop = new AbortController();
  vi.stubGlobal("XMLHttpRequest", FakeRequest);
});

test("a file is sent unchanged, reports its progress, and returns the preview", async () => {
  const asked = client.previewImport(file, options());
  const r = await sent();
  expect(r.opened).toEqual(["POST", "http://localhost/api/v1/import?format=auto&preview=1"]);
  expect(r.headers["content-type"]).toBe("application/octet-stream");
  expect(r.sent).toBe(file);
  r.progress(1, 4);
  r.progress(4, 4);
  r.progress(0, 0); // an empty file
  r.answer(200, { format: "ndjson", sessions: [] });
  expect(await asked).toEqual({ format: "ndjson", sessions: [] });
  expect(shares).toEqual([0.25, 1, 1]);
});

test("an error of the server keeps its message, and any other failure gets ours", async () => {
  const refused = client.importFile(file, options());
  (await sent()).answer(400, { error: { kind: "invalid", message: "line 3 is not JSON", hint: "leave it out" } });
  await expect(refused).rejects.toMatchObject({ kind: "invalid", message: "line 3 is not JSON", hint: "leave it out" });
  FakeRequest.last = undefined;
  const between = client.importFile(file, options());
  (await sent()).answer(502, "<html>bad gateway");
  await expect(between).rejects.toMatchObject({ kind: "unavailable", status: 502 });
  FakeRequest.last = undefined;
  const gone = client.importFile(file, options());
  (await sent()).tell("error");
  await expect(gone).rejects.toMatchObject({ kind: "unreachable" });
});

test("an abort stops the request, also before it has started", async () => {
  const stopped = client.importFile(file, options());
  const request = await sent();
  stop.abort();
  await expect(stopped).rejects.toBe(stop.signal.reason);
  expect(request.aborted).toBe(true);
  FakeRequest.last = undefined;
  await expect(client.importFile(file, options())).rejects.toBe(stop.signal.reason);
  expect((await sent()).sent).toBeUndefined();
});
