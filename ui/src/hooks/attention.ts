import type { Inbox, InboxQuestion } from "@tapedeck/client";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { visible } from "@/components/conversation/action";
import { keyOf } from "./inbox";
import { remembered } from "./remembered";

/** Shows the number of questions that wait in the title of the tab, in its icon, and on the icon of the app. */
export function useCount(n: number): void {
  useEffect(() => {
    if (n === 0) return;
    const lead = `(${n}) `;
    let bare = "";
    let own: string | undefined; // the title that was set here
    const add = () => {
      if (document.title === own) return;
      bare = document.title; // a page has set its title
      own = lead + bare;
      document.title = own;
    };
    add();
    const watch = new MutationObserver(add);
    watch.observe(document.head, { childList: true, subtree: true, characterData: true });
    return () => {
      watch.disconnect();
      if (document.title === own) document.title = bare;
    };
  }, [n]);
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    const set = (name: string) => icon?.setAttribute("href", icon.href.replace(/favicon[\w-]*\.svg$/, name));
    set(n > 0 ? "favicon-waiting.svg" : "favicon.svg");
    const app = navigator as Partial<Pick<Navigator, "setAppBadge">>;
    void app.setAppBadge?.(n).catch(() => undefined); // some browsers have badges for installed pages only
  }, [n]);
}

const choice = "tapedeck.notify";
const changed = "tapedeck:notify";

export type Notifying = "on" | "off" | "denied" | "unsupported";

function notifying(): Notifying {
  if (typeof Notification === "undefined") return "unsupported";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && remembered.get(choice) !== null ? "on" : "off";
}

function subscribe(l: () => void) {
  addEventListener(changed, l);
  addEventListener("storage", l); // another tab
  return () => {
    removeEventListener(changed, l);
    removeEventListener("storage", l);
  };
}

/** Whether the browser notifies the user of new questions. */
export const useNotifying = (): Notifying => useSyncExternalStore(subscribe, notifying);

/** Switches notifications on or off. The browser asks the user, so only a click may call this. */
export async function switchNotifying(on: boolean): Promise<void> {
  if (on && typeof Notification !== "undefined") await Notification.requestPermission();
  if (on) remembered.set(choice, "1");
  else remembered.remove(choice);
  dispatchEvent(new Event(changed));
}

/** Notifies the user of questions that are new, while the page is not in front. */
export function useNotices(inbox: Inbox | undefined, onOpen: (q: InboxQuestion) => void): void {
  const seen = useRef<Set<string>>(undefined);
  const open = useRef(onOpen);
  useEffect(() => {
    open.current = onOpen;
  });
  useEffect(() => {
    if (!inbox) return;
    const before = seen.current;
    seen.current = new Set(inbox.questions.map(keyOf));
    if (!before || notifying() !== "on" || document.hasFocus()) return;
    for (const q of inbox.questions) if (!before.has(keyOf(q))) announce(q, () => open.current(q));
  }, [inbox]);
}

function announce(q: InboxQuestion, onClick: () => void): void {
  const action = q.question.action as { command?: unknown } | undefined;
  const command = typeof action?.command === "string" ? action.command : "";
  const body = visible(q.question.message || command).slice(0, 300);
  try {
    // Two tabs with the same tag show one notification.
    const n = new Notification(`${visible(q.session.title || q.session.id)} waits for you`, { body, tag: keyOf(q) });
    n.onclick = () => {
      focus();
      n.close();
      onClick();
    };
  } catch {
    // Browsers of phones have the type, but only a service worker can notify.
  }
}
