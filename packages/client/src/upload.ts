import { errorIn, TapedeckError } from "./errors.ts";
import { type Http, query } from "./http.ts";

export interface UploadOptions {
  /** As in docs/http.md; "auto" without it. */
  format?: string | undefined;
  signal?: AbortSignal | undefined;
  /** The sent share of the file: 0 to 1. Only in browsers, where XMLHttpRequest exists. */
  onProgress?: ((share: number) => void) | undefined;
}

/** Streams a file to the server. Only XMLHttpRequest reports progress; without it, or without a listener, fetch sends. */
export async function upload<T>(http: Http, file: Blob, preview: boolean, o: UploadOptions = {}): Promise<T> {
  const path = `/import${query({ format: o.format, preview: preview ? "1" : undefined })}`;
  const headers = { "Content-Type": "application/octet-stream", Accept: "application/json" };
  if (o.onProgress && typeof XMLHttpRequest !== "undefined")
    return withProgress(http.base + path, await http.headersOf({ headers }), file, o);
  return http.read<T>(path, { method: "POST", headers, body: file, signal: o.signal });
}

function withProgress<T>(url: string, headers: Headers, file: Blob, o: UploadOptions): Promise<T> {
  return new Promise((resolve, reject) => {
    const r = new XMLHttpRequest();
    const abort = () => r.abort();
    r.open("POST", url);
    for (const [name, value] of headers) r.setRequestHeader(name, value);
    r.upload.addEventListener("progress", (e) => o.onProgress?.(e.total > 0 ? e.loaded / e.total : 1));
    r.addEventListener("load", () => {
      try {
        if (r.status >= 300) throw errorIn(r.responseText, r.status);
        resolve(JSON.parse(r.responseText));
      } catch (cause) {
        const foreign = () =>
          new TapedeckError("protocol", "the server did not answer with JSON", {
            hint: "a proxy may have answered: is a Tapedeck server at this address?",
            status: r.status,
            cause,
          });
        reject(cause instanceof TapedeckError ? cause : foreign());
      }
    });
    r.addEventListener("error", () =>
      reject(
        new TapedeckError("unreachable", "the file could not be sent", {
          hint: "check that the server is running and that the file has not changed",
        }),
      ),
    );
    r.addEventListener("abort", () => reject(o.signal?.reason));
    r.addEventListener("loadend", () => o.signal?.removeEventListener("abort", abort));
    o.signal?.addEventListener("abort", abort);
    if (o.signal?.aborted) reject(o.signal.reason);
    else r.send(file);
  });
}
