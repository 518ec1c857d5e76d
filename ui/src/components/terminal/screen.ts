import type { Size } from "@tapedeck/client/fold";
import { type IBufferCell, Terminal } from "@xterm/xterm";
import { css, indexed, mix, type Palette, readable } from "./colours";

/** Lines kept above the visible ones. */
const scrollback = 5000;
/** The limit of characters in a cell. Combining marks belong to the cell of their letter; hostile text has hundreds. */
const maxCellLength = 12;
/** Bidirectional controls: they only change the order of the text after them. */
const bidiControls = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Adjacent characters with the same style. */
export interface StyledText {
  text: string;
  cells?: number; // its width in cells, if the font may differ
  className?: string;
  style?: { color?: string; backgroundColor?: string };
}

/**
 * The screen of a terminal. xterm is never opened: it parses the escape sequences and
 * keeps the lines, and the page renders them. So it does not take the keyboard,
 * screen readers can read the text, styles need no exception in the page's policy,
 * and requests of the sequences (links, titles, the clipboard, replies) have no
 * effect.
 */
export class Screen {
  private readonly xterm: Terminal;
  private readonly queue: (string | Size)[] = [];
  private readonly onIdle: () => void;
  private cursorHidden = false;
  private disposed = false;
  idle = true; // all output has been written

  /** A program without a known size writes to a pipe: its lines end without a carriage return. */
  constructor(size: Size | undefined, onIdle: () => void) {
    this.onIdle = onIdle;
    this.xterm = new Terminal({ ...(size ?? { cols: 80, rows: 24 }), convertEol: !size, scrollback });
    for (const final of ["h", "l"])
      this.xterm.parser.registerCsiHandler({ prefix: "?", final }, (modes) => {
        if (modes.includes(25)) this.cursorHidden = final === "l";
        return false;
      });
  }

  write(text: string): void {
    const last = this.queue.length - 1;
    if (last >= 0 && typeof this.queue[last] === "string") this.queue[last] += text;
    else this.queue.push(text);
    this.begin();
  }

  resize(size: Size): void {
    this.queue.push(size);
    this.begin();
  }

  dispose(): void {
    this.disposed = true;
    this.xterm.dispose();
  }

  private begin(): void {
    if (!this.idle) return;
    this.idle = false;
    queueMicrotask(this.next); // output that arrives together is written together
  }

  private next = (): void => {
    if (this.disposed) return;
    const item = this.queue.shift();
    if (typeof item === "string") {
      this.xterm.write(item, this.next);
      return;
    }
    if (item) {
      this.xterm.options.convertEol = false;
      this.xterm.resize(item.cols, item.rows);
      this.next();
      return;
    }
    this.idle = true;
    this.onIdle();
  };

  get cols(): number {
    return this.xterm.cols;
  }

  get rows(): number {
    return this.xterm.rows;
  }

  /** The number of lines, up to the cursor or the last non-empty line. */
  get length(): number {
    const b = this.xterm.buffer.active;
    const cursor = b.baseY + b.cursorY;
    for (let n = b.length; n > 1; n--) {
      if (n - 1 <= cursor || (b.getLine(n - 1)?.translateToString(true) ?? "") !== "") return n;
    }
    return 1;
  }

  line(y: number, p: Palette): StyledText[] {
    const b = this.xterm.buffer.active;
    const line = b.getLine(y);
    const cursor = !this.cursorHidden && y === b.baseY + b.cursorY ? Math.min(b.cursorX, this.cols - 1) : -1;
    const runs: StyledText[] = [];
    let key = "";
    let last: StyledText | undefined;
    const cell = b.getNullCell();
    for (let x = 0; x < (line?.length ?? 0); x++) {
      if (!line?.getCell(x, cell) || cell.getWidth() === 0) continue; // the second half of a wide character
      const text = cell.getChars().slice(0, maxCellLength).replace(bidiControls, "") || " ";
      const plain = /^[ -~]$/.test(text);
      const look = x === cursor ? "cursor" : `${plain} ${lookOf(cell)}`;
      if (last && look === key) {
        last.text += text;
        if (last.cells) last.cells += cell.getWidth();
        continue;
      }
      last = { text, ...styleOf(cell, p) };
      if (!plain) last.cells = cell.getWidth();
      if (x === cursor) last.className = `${last.className ?? ""} tty-cursor`.trim();
      key = look;
      runs.push(last);
    }
    return trimmed(runs);
  }
}

/** Removes unstyled spaces at the end. */
function trimmed(runs: StyledText[]): StyledText[] {
  const last = runs.at(-1);
  if (!last || last.style || last.className) return runs;
  last.text = last.text.trimEnd();
  return last.text === "" ? runs.slice(0, -1) : runs;
}

function lookOf(c: IBufferCell): string {
  const flags = [c.isBold(), c.isDim(), c.isItalic(), c.isUnderline(), c.isInverse(), c.isInvisible()];
  return `${flags} ${c.isStrikethrough()} ${c.getFgColorMode()} ${c.getFgColor()} ${c.getBgColorMode()} ${c.getBgColor()}`;
}

function styleOf(c: IBufferCell, p: Palette): Pick<StyledText, "className" | "style"> {
  const names: string[] = [];
  if (c.isBold()) names.push("font-bold");
  if (c.isItalic()) names.push("italic");
  if (c.isUnderline()) names.push("underline");
  if (c.isStrikethrough()) names.push("line-through");
  if (c.isInvisible()) names.push("opacity-0");
  const out: Pick<StyledText, "className" | "style"> = names.length > 0 ? { className: names.join(" ") } : {};
  const bare = c.isFgDefault() && c.isBgDefault() && !c.isInverse() && !c.isDim();
  if (bare) return out;
  let text = c.isFgRGB() ? c.getFgColor() : c.isFgPalette() ? indexed(p, c.getFgColor()) : p.text;
  let back = c.isBgRGB() ? c.getBgColor() : c.isBgPalette() ? indexed(p, c.getBgColor()) : p.back;
  if (c.isInverse()) [text, back] = [back, text];
  if (c.isDim()) text = mix(text, back, 0.4);
  const style: { color: string; backgroundColor?: string } = { color: css(isDrawing(c) ? text : readable(text, back)) };
  if (back !== p.back) style.backgroundColor = css(back);
  return { ...out, style };
}

/** Whether a character is for drawing, such as a bar or a frame: its colour is not adjusted. */
function isDrawing(c: IBufferCell): boolean {
  const code = c.getCode();
  return (code >= 0x2500 && code <= 0x259f) || (code >= 0xe0b0 && code <= 0xe0d6);
}
