import { type IBufferCell, Terminal } from "@xterm/xterm";
import type { Size } from "@/fold/terminals";
import { css, indexed, mix, type Palette, readable } from "./colours";

/** Lines that are kept above those of the terminal. */
const scrollback = 5000;
/** Marks above and below a letter are parts of its cell; some write hundreds. */
const marks = 12;
/** These change the order of what follows them, and nothing else. */
const turning = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Letters side by side that look the same. */
export interface Run {
  text: string;
  cells?: number; // how wide it has to be, if its font may differ
  className?: string;
  style?: { color?: string; backgroundColor?: string };
}

/**
 * What a terminal shows. It is never opened: xterm reads the escape sequences and
 * keeps the lines, and the page draws them. So nothing takes the keyboard, text
 * is text to a screen reader, style needs no exception of the page's policy, and
 * what the sequences ask for beside letters (links, titles, the clipboard,
 * answers) has nowhere to go.
 */
export class Screen {
  private readonly xterm: Terminal;
  private readonly todo: (string | Size)[] = [];
  private readonly onIdle: () => void;
  private cursorHidden = false;
  private gone = false;
  idle = true; // all that was written is shown

  /** A program that was told no size writes to a pipe: there a line ends without a return. */
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
    const last = this.todo.length - 1;
    if (last >= 0 && typeof this.todo[last] === "string") this.todo[last] += text;
    else this.todo.push(text);
    this.begin();
  }

  resize(size: Size): void {
    this.todo.push(size);
    this.begin();
  }

  dispose(): void {
    this.gone = true;
    this.xterm.dispose();
  }

  private begin(): void {
    if (!this.idle) return;
    this.idle = false;
    queueMicrotask(this.next); // what comes at once is written at once
  }

  private next = (): void => {
    if (this.gone) return;
    const todo = this.todo.shift();
    if (typeof todo === "string") {
      this.xterm.write(todo, this.next);
      return;
    }
    if (todo) {
      this.xterm.options.convertEol = false;
      this.xterm.resize(todo.cols, todo.rows);
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

  /** How many lines there are, up to the last that has something. */
  get length(): number {
    const b = this.xterm.buffer.active;
    const cursor = b.baseY + b.cursorY;
    for (let n = b.length; n > 1; n--) {
      if (n - 1 <= cursor || (b.getLine(n - 1)?.translateToString(true) ?? "") !== "") return n;
    }
    return 1;
  }

  line(y: number, p: Palette): Run[] {
    const b = this.xterm.buffer.active;
    const line = b.getLine(y);
    const cursor = !this.cursorHidden && y === b.baseY + b.cursorY ? Math.min(b.cursorX, this.cols - 1) : -1;
    const runs: Run[] = [];
    let key = "";
    let last: Run | undefined;
    const cell = b.getNullCell();
    for (let x = 0; x < (line?.length ?? 0); x++) {
      if (!line?.getCell(x, cell) || cell.getWidth() === 0) continue; // the second half of a wide one
      const text = cell.getChars().slice(0, marks).replace(turning, "") || " ";
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

/** Space at the end that looks like nothing is nothing. */
function trimmed(runs: Run[]): Run[] {
  const last = runs.at(-1);
  if (!last || last.style || last.className) return runs;
  last.text = last.text.trimEnd();
  return last.text === "" ? runs.slice(0, -1) : runs;
}

function lookOf(c: IBufferCell): string {
  const flags = [c.isBold(), c.isDim(), c.isItalic(), c.isUnderline(), c.isInverse(), c.isInvisible()];
  return `${flags} ${c.isStrikethrough()} ${c.getFgColorMode()} ${c.getFgColor()} ${c.getBgColorMode()} ${c.getBgColor()}`;
}

function styleOf(c: IBufferCell, p: Palette): Pick<Run, "className" | "style"> {
  const names: string[] = [];
  if (c.isBold()) names.push("font-bold");
  if (c.isItalic()) names.push("italic");
  if (c.isUnderline()) names.push("underline");
  if (c.isStrikethrough()) names.push("line-through");
  if (c.isInvisible()) names.push("opacity-0");
  const out: Pick<Run, "className" | "style"> = names.length > 0 ? { className: names.join(" ") } : {};
  const bare = c.isFgDefault() && c.isBgDefault() && !c.isInverse() && !c.isDim();
  if (bare) return out;
  let text = c.isFgRGB() ? c.getFgColor() : c.isFgPalette() ? indexed(p, c.getFgColor()) : p.text;
  let back = c.isBgRGB() ? c.getBgColor() : c.isBgPalette() ? indexed(p, c.getBgColor()) : p.back;
  if (c.isInverse()) [text, back] = [back, text];
  if (c.isDim()) text = mix(text, back, 0.4);
  const style: { color: string; backgroundColor?: string } = { color: css(drawn(c) ? text : readable(text, back)) };
  if (back !== p.back) style.backgroundColor = css(back);
  return { ...out, style };
}

/** Whether a letter is a part of a picture, such as a bar or a frame: its colour stays as it is. */
function drawn(c: IBufferCell): boolean {
  const code = c.getCode();
  return (code >= 0x2500 && code <= 0x259f) || (code >= 0xe0b0 && code <= 0xe0d6);
}
