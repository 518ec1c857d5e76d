/**
 * Splits Markdown into blocks that can be parsed on their own. It cuts at blank lines
 * outside of code fences and lists. Joined, the blocks give the text again.
 */
export function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let begin = 0;
  let fence = "";
  let blank = false;
  let lists = false; // the block has a list, which may continue after a blank line
  for (let at = 0; at < text.length; ) {
    const nl = text.indexOf("\n", at);
    const end = nl < 0 ? text.length : nl + 1;
    const line = text.slice(at, end);
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    const item = /^\s*([-*+]|\d+[.)])\s/.test(line);
    if (!fence && blank && line.trim() !== "" && /^\S/.test(line) && !(lists && item) && at > begin) {
      blocks.push(text.slice(begin, at));
      begin = at;
      lists = false;
    }
    if (mark && !fence) fence = mark;
    else if (mark && fence && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = "";
    if (!fence && item) lists = true;
    blank = line.trim() === "";
    at = end;
  }
  if (begin < text.length) blocks.push(text.slice(begin));
  return blocks;
}

/** Whether a text may define links or footnotes that other blocks refer to: "[name]: …". */
export function hasDefinitions(text: string): boolean {
  return /^[ \t>]{0,12}\[[^\]\n]{1,999}\]:/m.test(text);
}
