/** A duration as a clock: 4:32 or 1:04:32, optionally with tenths of a second. */
export function clock(ms: number, tenths = false): string {
  const neg = ms < 0 ? "-" : "";
  const t = Math.floor(Math.abs(ms) / 100) / 10;
  const s = Math.floor(t % 60);
  const m = Math.floor(t / 60) % 60;
  const h = Math.floor(t / 3600);
  const tail = tenths ? `.${Math.floor((t * 10) % 10)}` : "";
  const two = (n: number) => String(n).padStart(2, "0");
  return neg + (h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`) + tail;
}

/** A duration with units: 120ms, 4.2s, 3m 12s, 2h 5m, 3d 4h. */
export function duration(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return "";
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)}s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m}m ${Math.floor(s % 60)}s`;
  const h = Math.floor(m / 60);
  return h < 48 ? `${h}h ${m % 60}m` : `${Math.floor(h / 24)}d ${h % 24}h`;
}

/** An approximate number: 950, 4.1k, 2.3M. */
export function short(n: number): string {
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

export function dollars(n: number): string {
  return `$${n < 0.01 && n > 0 ? n.toFixed(4) : n.toFixed(2)}`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** The day of a time as a heading: Today, Yesterday, Mon 16 November. */
export function day(at: string, now = Date.now()): string {
  const d = new Date(at);
  const days = Math.round((midnight(now) - midnight(d.getTime())) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  const year = d.getFullYear() === new Date(now).getFullYear() ? undefined : "numeric";
  return d.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "long", year });
}

function midnight(ms: number): number {
  return new Date(ms).setHours(0, 0, 0, 0);
}

/** 16 Nov 2026. */
export function date(d: Date): string {
  return d.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

export function timeOfDay(at: string): string {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** The beginning of a text on one line. */
export function brief(text: string, max = 120): string {
  const line = text
    .slice(0, max * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

/** A first word that is a plain word, not an id, a path, a name of code or the name of a program before a colon. */
const plainWord = /^\p{Ll}[\p{Ll}'’]*[,;.!?]?(?=\s|$)/u;

/** A text that begins with a capital. Names in the text stay as they are, so that they can be copied and found. */
export function capital(text: string): string {
  return plainWord.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** A text as a sentence of its own. */
export const sentence = (text: string): string => capital(text) + (/[.!?…:]$/.test(text) ? "" : ".");

/** Markdown without its marks, for a place that shows one line of text. Words and their order stay. */
export function withoutMarks(markdown: string): string {
  return markdown
    .replace(/^ {0,3}(?:```|~~~).*$/gm, " ")
    .replace(/^ {0,3}(?:#{1,6}|>+|[-*+]|\d{1,9}[.)])[ \t]+/gm, "")
    .replace(/!?\[([^\]\n]*)\]\([^()\s]*\)/g, "$1")
    .replace(/(\*\*|__|~~)(?=\S)([^\n]*?\S)\1/g, "$2")
    .replace(/`([^`\n]+)`/g, "$1")
    .replace(/(^|[\s(])\*(?=\S)([^*\n]*[^*\s])\*(?=$|[\s.,;:!?)])/gm, "$1$2");
}

/** How long ago something was, in one word: now, 5 min, 3 h, 2 d; older than a week, the day. */
export function since(at: string, now: number): string {
  const minutes = Math.floor((now - Date.parse(at)) / 60_000);
  if (!(minutes >= 1)) return minutes < -1 ? date(new Date(at)) : "now";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  return minutes < 7 * 24 * 60 ? `${Math.floor(minutes / (24 * 60))} d` : date(new Date(at));
}

/** How long ago something was. */
export function ago(at: string, now: number): string {
  const minutes = Math.floor((now - Date.parse(at)) / 60_000);
  if (!(minutes >= 1)) return "just now"; // also for a time in the future, or none
  if (minutes < 60) return `${plural(minutes, "minute")} ago`;
  if (minutes < 48 * 60) return `${plural(Math.floor(minutes / 60), "hour")} ago`;
  return `${plural(Math.floor(minutes / (24 * 60)), "day")} ago`;
}
