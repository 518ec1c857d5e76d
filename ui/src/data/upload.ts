import { ApiError, errorIn, query } from "./api";

/** What an import would make, see docs/http.md. */
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
  /** How much of it is there: 0 to 1. */
  onProgress: (share: number) => void;
}

export const previewImport = (file: Blob, o: Options) =>
  upload<ImportPreview>(file, { format: o.format, preview: "1" }, o);
export const importFile = (file: Blob, o: Options) => upload<Imported>(file, { format: o.format }, o);

/** Sends a file as it is read from the disk. fetch would not tell how far it is. */
function upload<T>(file: Blob, params: Record<string, string>, { signal, onProgress }: Options): Promise<T> {
  return new Promise((ok, no) => {
    const r = new XMLHttpRequest();
    const abort = () => r.abort();
    r.open("POST", `/api/v1/import${query(params)}`);
    r.setRequestHeader("Content-Type", "application/octet-stream");
    r.setRequestHeader("Accept", "application/json");
    r.upload.addEventListener("progress", (e) => onProgress(e.total > 0 ? e.loaded / e.total : 1));
    r.addEventListener("load", () => {
      if (r.status < 300) ok(JSON.parse(r.responseText));
      else no(errorIn(r.responseText, r.status));
    });
    r.addEventListener("error", () =>
      no(
        new ApiError(
          "unreachable",
          "the file could not be sent",
          "see whether the server still runs, and the file is still as it was",
        ),
      ),
    );
    r.addEventListener("abort", () => no(signal.reason));
    r.addEventListener("loadend", () => signal.removeEventListener("abort", abort));
    signal.addEventListener("abort", abort);
    if (signal.aborted) no(signal.reason);
    else r.send(file);
  });
}
