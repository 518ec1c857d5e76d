import type { Message, Run, Snapshot, ToolCall } from "@tapedeck/client";

/** More rows than these would make a page slow; the oldest are left out. */
const maxRows = 400;
/** Of one text, such as the answer of a tool. */
const maxText = 20_000;

type Item = { kind: "message"; item: Message } | { kind: "tool"; item: ToolCall } | { kind: "run"; item: Run };

/** Makes an element. Text is text: nothing that an agent says is read as HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(name);
  for (const [n, value] of Object.entries(attributes)) e.setAttribute(n, value);
  e.append(...children);
  return e;
}

/** The conversation as a list. A row is made again only if its item is another one. */
export class Rows {
  private readonly list: HTMLElement;
  private readonly rows = new Map<string, { item: object; row: HTMLLIElement }>();
  private dropped: HTMLLIElement | undefined;

  constructor(list: HTMLElement) {
    this.list = list;
  }

  show(view: Snapshot): void {
    const atEnd = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 40;
    const items = itemsOf(view);
    const shown = items.slice(-maxRows);
    const keys = new Set<string>();
    let before: HTMLLIElement | undefined = this.tellDropped((view.earlier ?? 0) + items.length - shown.length);
    for (const i of shown) {
      const key = `${i.kind} ${i.item.offset}`;
      keys.add(key);
      let entry = this.rows.get(key);
      // A seek folds again: the same item is another object.
      if (entry && entry.item !== i.item && JSON.stringify(entry.item) === JSON.stringify(i.item)) entry.item = i.item;
      if (entry?.item !== i.item) {
        const row = rowOf(i);
        // What the reader has opened stays open.
        if (entry?.row.querySelector("details")?.open) row.querySelector("details")?.setAttribute("open", "");
        entry?.row.replaceWith(row);
        entry = { item: i.item, row };
        this.rows.set(key, entry);
      }
      const next: ChildNode | null = before ? before.nextSibling : this.list.firstChild;
      if (next !== entry.row) this.list.insertBefore(entry.row, next);
      before = entry.row;
    }
    for (const [key, { row }] of this.rows) {
      if (keys.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }

  private tellDropped(count: number): HTMLLIElement | undefined {
    this.dropped?.remove();
    this.dropped = undefined;
    if (count <= 0) return undefined;
    this.dropped = element("li", {}, element("span", { class: "who" }, `${count} earlier items are not shown`));
    this.list.prepend(this.dropped);
    return this.dropped;
  }
}

function itemsOf(view: Snapshot): Item[] {
  const items: Item[] = [
    ...view.messages.filter((m) => m.role !== "tool").map((item) => ({ kind: "message" as const, item })),
    ...view.tool_calls.map((item) => ({ kind: "tool" as const, item })),
    ...view.runs.filter((r) => r.error).map((item) => ({ kind: "run" as const, item })),
  ];
  const at = (i: Item) => (i.kind === "run" ? (i.item.end_offset ?? i.item.offset) : i.item.offset);
  return items.sort((a, b) => at(a) - at(b));
}

function rowOf(i: Item): HTMLLIElement {
  switch (i.kind) {
    case "message":
      return messageRow(i.item);
    case "tool":
      return element("li", { class: "tool" }, toolDetails(i.item));
    case "run":
      return element("li", { class: "error" }, i.item.error?.message ?? "");
  }
}

function messageRow(m: Message): HTMLLIElement {
  if (m.role === "reasoning" || m.role === "thinking") {
    const body = element("div", {}, cut(m.text));
    return element("li", { class: "thinking" }, element("details", {}, element("summary", {}, "Thinking"), body));
  }
  return element("li", { class: m.role }, element("span", { class: "who" }, m.role), ...blocks(cut(m.text)));
}

/** A text with its code blocks. */
function blocks(text: string): (Node | string)[] {
  return text.split(/^```[^\n]*\n?/m).map((part, n) => (n % 2 === 1 ? element("pre", { tabindex: "0" }, part) : part));
}

function toolDetails(t: ToolCall): HTMLElement {
  const details = element("details", {}, element("summary", {}, `${t.name} · ${t.status}`));
  if (t.arguments) details.append(element("pre", { tabindex: "0", "aria-label": "Arguments" }, cut(t.arguments)));
  if (t.result) details.append(element("pre", { tabindex: "0", "aria-label": "Answer" }, cut(t.result.text ?? "")));
  return details;
}

function cut(text: string): string {
  return text.length > maxText ? `${text.slice(0, maxText)} … (${text.length - maxText} more characters)` : text;
}
