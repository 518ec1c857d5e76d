import type { Imported, ImportPreview } from "@tapedeck/client";
import { useCallback, useEffect, useRef, useState } from "react";
import { client } from "@/live";

export interface Import {
  file?: File;
  format: string;
  /** The current request, and the sent share of the file: 0 to 1. */
  busy?: { action: "preview" | "import"; share: number };
  preview?: ImportPreview;
  done?: Imported;
  error?: unknown;
}

const nothing: Import = { format: "auto" };

/** The steps of an import: choose a file, preview, import. Leaving the page before the end imports nothing. */
export function useImport() {
  const [state, set] = useState<Import>(nothing);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  const send = useCallback(
    async (file: File, format: string, action: "preview" | "import", preview?: ImportPreview) => {
      running.current?.abort();
      const mine = new AbortController();
      running.current = mine;
      const base = { file, format, preview };
      const update = (s: Import) => running.current === mine && !mine.signal.aborted && set(s);
      update({ ...base, busy: { action, share: 0 } });
      const o = {
        format,
        signal: mine.signal,
        onProgress: (share: number) => update({ ...base, busy: { action, share } }),
      };
      try {
        if (action === "preview") update({ ...base, preview: await client.previewImport(file, o) });
        else update({ ...base, done: await client.importFile(file, o) });
      } catch (error) {
        update({ ...base, error });
      }
    },
    [],
  );

  return {
    ...state,
    /** Previews a file. The format chosen for the previous file is not kept. */
    choose: (file: File) => void send(file, "auto", "preview"),
    setFormat: (format: string) => state.file && void send(state.file, format, "preview"),
    start: () => state.file && void send(state.file, state.preview?.format ?? state.format, "import", state.preview),
    cancel: () => {
      running.current?.abort();
      set(nothing);
    },
  };
}
