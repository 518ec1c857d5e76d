import type { About } from "./tape";

/** How a recording opens. */
export interface Look {
  /** The first playhead. */
  at: number;
  /** Where the poster's button begins to play; undefined without a poster. */
  start?: number;
  theme?: "light" | "dark";
}

/** What the address asks for comes first (#at=42, #poster=40&start=0&theme=dark), then what the file says. */
export function lookOf(about: Pick<About, "start" | "poster" | "theme">, hash: string): Look {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const offset = (name: string) => {
    const n = Number(asked.get(name) || Number.NaN);
    return Number.isSafeInteger(n) && n >= 0 ? n : undefined;
  };
  const theme = asked.get("theme") ?? about.theme;
  const dress: Pick<Look, "theme"> = theme === "light" || theme === "dark" ? { theme } : {};
  const at = offset("at");
  if (at !== undefined) return { at, ...dress };
  const start = offset("start") ?? about.start;
  const poster = offset("poster") ?? about.poster;
  if (poster !== undefined) return { at: poster, start: start ?? 0, ...dress };
  return { at: start ?? Number.MAX_SAFE_INTEGER, ...dress };
}
