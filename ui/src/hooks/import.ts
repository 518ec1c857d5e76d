import { useCallback, useEffect, useRef, useState } from "react";
import { type Imported, type ImportPreview, importFile, previewImport } from "@/data/upload";

export interface Import {
  file?: File;
  format: string;
  /** What is under way, and how much of the file is there: 0 to 1. */
  busy?: { what: "preview" | "import"; share: number };
  preview?: ImportPreview;
  done?: Imported;
  error?: unknown;
}

const nothing: Import = { format: "auto" };

/** The way of a file into the log: chosen, looked at, imported. Who leaves on the way has imported nothing. */
export function useImport() {
  const [state, set] = useState<Import>(nothing);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  const send = useCallback(async (file: File, format: string, what: "preview" | "import", preview?: ImportPreview) => {
    running.current?.abort();
    const mine = new AbortController();
    running.current = mine;
    const base = { file, format, preview };
    const tell = (s: Import) => running.current === mine && !mine.signal.aborted && set(s);
    tell({ ...base, busy: { what, share: 0 } });
    const o = {
      format,
      signal: mine.signal,
      onProgress: (share: number) => tell({ ...base, busy: { what, share } }),
    };
    try {
      if (what === "preview") tell({ ...base, preview: await previewImport(file, o) });
      else tell({ ...base, done: await importFile(file, o) });
    } catch (error) {
      tell({ ...base, error });
    }
  }, []);

  return {
    ...state,
    /** Looks at a file. In a format that was chosen for another one it would be odd. */
    choose: (file: File) => void send(file, "auto", "preview"),
    setFormat: (format: string) => state.file && void send(state.file, format, "preview"),
    start: () => state.file && void send(state.file, state.preview?.format ?? state.format, "import", state.preview),
    cancel: () => {
      running.current?.abort();
      set(nothing);
    },
  };
}
