import type { Theme } from "@/hooks/theme";

/** Red, green and blue in one number: 0xRRGGBB. */
export type Rgb = number;

export interface Palette {
  text: Rgb;
  back: Rgb;
  ansi: Rgb[]; // the sixteen named colours
}

const dark: Palette = {
  text: 0xece8e1,
  back: 0x151412,
  ansi: [
    0x35322d, 0xff8a80, 0x6fce96, 0xeabd5c, 0x79b0ff, 0xd9a0f0, 0x6fcfd6, 0xd5d0c7, 0x8b857a, 0xffb0a8, 0x9be5b8,
    0xf7d98a, 0xa9ccff, 0xecc4fb, 0x9fe6ea, 0xffffff,
  ],
};

const light: Palette = {
  text: 0x1f1d1a,
  back: 0xffffff,
  ansi: [
    0x1f1d1a, 0xb3261e, 0x1f7a45, 0x8a5a00, 0x1d5fbf, 0x8a3b9a, 0x0b6e7a, 0x69645b, 0x4f4a43, 0xc4372e, 0x2a7f4d,
    0x966400, 0x2f6fd0, 0x9b4bab, 0x14757f, 0x3a3631,
  ],
};

export const palettes: Record<Theme, Palette> = { dark, light };

/** One of the 256 colours: sixteen named ones, a cube of 216, and greys. */
export function indexed(p: Palette, i: number): Rgb {
  if (i < 16) return p.ansi[i] ?? p.text;
  if (i >= 232) return (8 + 10 * (i - 232)) * 0x010101;
  const level = (n: number) => (n === 0 ? 0 : 55 + 40 * n);
  const n = i - 16;
  return (level(Math.floor(n / 36)) << 16) | (level(Math.floor(n / 6) % 6) << 8) | level(n % 6);
}

const parts = (c: Rgb) => [(c >> 16) & 255, (c >> 8) & 255, c & 255] as const;

export function mix(a: Rgb, b: Rgb, share: number): Rgb {
  const [x, y] = [parts(a), parts(b)];
  const one = (i: 0 | 1 | 2) => Math.round(x[i] + (y[i] - x[i]) * share);
  return (one(0) << 16) | (one(1) << 8) | one(2);
}

/** The relative luminance of a colour as WCAG defines it, from 0 to 1. */
function luminance(c: Rgb): number {
  const linear = (v: number) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = parts(c);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

export function contrast(a: Rgb, b: Rgb): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

const minContrast = 4.5;
const cache = new Map<number, Rgb>();

/** Adjusts a text colour until it is readable on a background. Programs choose colours for another theme. */
export function readable(text: Rgb, back: Rgb): Rgb {
  const key = text * 0x1000000 + back;
  const before = cache.get(key);
  if (before !== undefined) return before;
  const to = contrast(0, back) > contrast(0xffffff, back) ? 0 : 0xffffff;
  let c = text;
  for (let share = 0.1; contrast(c, back) < minContrast && share <= 1.01; share += 0.1)
    c = mix(text, to, Math.min(share, 1));
  if (cache.size > 10_000) cache.clear(); // a program may use many colours, such as for a picture
  cache.set(key, c);
  return c;
}

export const css = (c: Rgb) => `#${c.toString(16).padStart(6, "0")}`;
