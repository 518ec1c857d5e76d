import { ApiError, errorIn, query } from "./api";

/** The preview of an import, see docs/http.md. */
export interface ImportPreview {
  format: string;
  sessions: PreviewedSession[];
  total: number;
  events: number;
  lines: number;
  skipped?: Skipped[];
}

export interface PreviewedSession {
  id?: string;
  id_taken?: boolean;
  title?: string;
  events: number;
  threads?: string[];
  first_at?: string;
  last_at?: string;
}

export interface Imported {
  sessions: string[];
  events: number;
  lines: number;
  skipped?: Skipped[];
}

export interface Skipped {
  line: number;
  reason: string;
}

interface Options {
  format: string;
  signal: AbortSignal;
  /** The sent share of the file: 0 to 1. */
  onProgress: (share: number) => void;
}

export const previewImport = (file: Blob, o: Options) =>
  upload<ImportPreview>(file, { format: o.format, preview: "1" }, o);
export const importFile = (file: Blob, o: Options) => upload<Imported>(file, { format: o.format }, o);

/** Streams a file from the disk to the server. It uses XMLHttpRequest because fetch reports no progress. */
function upload<T>(file: Blob, params: Record<string, string>, { signal, onProgress }: Options): Promise<T> {
  return new Promise((resolve, reject) => {
    const r = new XMLHttpRequest();
    const abort = () => r.abort();
    r.open("POST", `/api/v1/import${query(params)}`);
    r.setRequestHeader("Content-Type", "application/octet-stream");
    r.setRequestHeader("Accept", "application/json");
    r.upload.addEventListener("progress", (e) => onProgress(e.total > 0 ? e.loaded / e.total : 1));
    r.addEventListener("load", () => {
      if (r.status < 300) resolve(JSON.parse(r.responseText));
      else reject(errorIn(r.responseText, r.status));
    });
    r.addEventListener("error", () =>
      reject(
        new ApiError(
          "unreachable",
          "the file could not be sent",
          "check that the server is running and that the file has not changed",
        ),
      ),
    );
    r.addEventListener("abort", () => reject(signal.reason));
    r.addEventListener("loadend", () => signal.removeEventListener("abort", abort));
    signal.addEventListener("abort", abort);
    if (signal.aborted) reject(signal.reason);
    else r.send(file);
  });
}
