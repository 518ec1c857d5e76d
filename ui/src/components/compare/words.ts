/** A part of a text. `same`: the other text has it, too. */
export interface Piece {
  text: string;
  same: boolean;
}

/** With more comparisons, the text between the common start and end counts as replaced. */
const maxComparisons = 1_000_000;

/** Texts that are less similar are shown as two texts, not as one changed text. */
const minSimilarity = 0.4; // spaces count as words

function asOnePiece(text: string): Piece[] {
  return text ? [{ text, same: false }] : [];
}

/** Splits two texts into equal and different parts, word by word. */
export function wordDiff(a: string, b: string, least = minSimilarity): { a: Piece[]; b: Piece[] } {
  const left = splitWords(a);
  const right = splitWords(b);
  const shorter = Math.min(left.length, right.length);
  let head = 0;
  while (head < shorter && left[head] === right[head]) head++;
  let tail = 0;
  while (tail < shorter - head && left.at(-1 - tail) === right.at(-1 - tail)) tail++;
  const [keptLeft, keptRight] = common(left.slice(head, left.length - tail), right.slice(head, right.length - tail));
  const kept = head + tail + keptLeft.filter(Boolean).length;
  if (kept < least * Math.max(left.length, right.length)) return { a: asOnePiece(a), b: asOnePiece(b) };
  return { a: pieces(left, head, tail, keptLeft), b: pieces(right, head, tail, keptRight) };
}

function splitWords(text: string): string[] {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/** Marks the words of both texts that are in their longest common subsequence. */
function common(a: string[], b: string[]): [boolean[], boolean[]] {
  const keptA = new Array<boolean>(a.length).fill(false);
  const keptB = new Array<boolean>(b.length).fill(false);
  if (a.length * b.length > maxComparisons) return [keptA, keptB];
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] as number;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) keptA[i++] = keptB[j++] = true;
    else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return [keptA, keptB];
}

function pieces(words: string[], head: number, tail: number, kept: boolean[]): Piece[] {
  const out: Piece[] = [];
  const isSame = (i: number) => i < head || i >= words.length - tail || kept[i - head] === true;
  words.forEach((text, i) => {
    // A space between two replaced words counts as replaced.
    const between = !text.trim() && i > 0 && i < words.length - 1 && !isSame(i - 1) && !isSame(i + 1);
    const same = isSame(i) && !between;
    const last = out.at(-1);
    if (last?.same === same) last.text += text;
    else out.push({ text, same });
  });
  return out;
}
