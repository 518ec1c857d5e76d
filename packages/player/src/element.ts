import { TapedeckError } from "@tapedeck/client";
import type { DeckState, Player } from "@tapedeck/client/player";
import { element, Rows } from "./rows.ts";
import { open } from "./source.ts";
import { style } from "./style.ts";

const speeds = [0.5, 1, 2, 4, 8];

/**
 * `<tapedeck-player src="…">` plays a session of a server (the address of its page, such as
 * https://host/s/demo) or an export of the format json or ndjson.
 *
 * Attributes: `src`; `at`, the offset at which it begins; `poster`, the offset of the
 * moment that it shows until somebody plays it; `autoplay`; `speed`; `theme` (light or dark, otherwise that of the reader's system). Events: `ready`, `error`.
 */
export class TapedeckPlayer extends HTMLElement {
  static observedAttributes = ["src", "at", "speed"];

  /** The playhead; undefined until the source is open. */
  player: Player | undefined;

  private readonly title_ = element("b");
  private readonly status = element("span", { role: "status" });
  private readonly list = element("ol", { tabindex: "0", "aria-label": "Conversation" });
  private readonly playButton = element("button", { type: "button" }, "Play");
  private readonly bar = element("input", { type: "range", min: "0", value: "0", step: "1", "aria-label": "Position" });
  private readonly time = element("time");
  private readonly liveButton = element("button", { type: "button", hidden: "" }, "Live");
  private readonly speedChoice = element("select", { "aria-label": "Speed" });
  private readonly fault = element("p", { class: "error", role: "alert", hidden: "" });
  private readonly poster = element("button", {
    type: "button",
    class: "poster",
    hidden: "",
    "aria-label": "Play the session",
  });
  private rows = new Rows(this.list);
  private opening: AbortController | undefined;
  private ready = false;

  constructor() {
    super();
    for (const s of speeds) this.speedChoice.append(element("option", { value: String(s) }, `${s}×`));
    this.speedChoice.value = "1";
    const box = element(
      "section",
      { class: "player", "aria-label": "Session" },
      element("header", {}, this.title_, this.status),
      this.fault,
      element("div", { class: "stage" }, this.list, this.poster),
      element("footer", {}, this.playButton, this.bar, this.time, this.speedChoice, this.liveButton),
    );
    const root = this.attachShadow({ mode: "open" });
    this.dress(root);
    root.append(box);
    this.poster.append(element("span", { "aria-hidden": "true" }, "▶"));
    this.poster.addEventListener("click", () => this.playFromStart());
    this.playButton.addEventListener("click", () =>
      this.poster.hidden ? this.player?.toggle() : this.playFromStart(),
    );
    this.liveButton.addEventListener("click", () => {
      this.poster.hidden = true;
      this.player?.goLive();
    });
    this.bar.addEventListener("input", () => {
      this.poster.hidden = true;
      this.player?.seek(Number(this.bar.value));
    });
    this.speedChoice.addEventListener("change", () => this.player?.setSpeed(Number(this.speedChoice.value)));
  }

  /** A style sheet that is made by script needs no permission of the page's policy for inline styles. */
  private dress(root: ShadowRoot): void {
    if (!("adoptedStyleSheets" in root)) return;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    root.adoptedStyleSheets = [sheet];
  }

  connectedCallback(): void {
    void this.load();
  }

  disconnectedCallback(): void {
    this.leave();
  }

  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    if (!this.isConnected || before === value) return;
    if (name === "src") void this.load();
    else if (name === "at" && value !== null) this.player?.seek(Number(value));
    else if (name === "speed") this.setSpeed();
  }

  private leave(): void {
    this.opening?.abort();
    this.opening = undefined;
    this.player?.close();
    this.player = undefined;
  }

  private async load(): Promise<void> {
    this.leave();
    this.list.replaceChildren();
    this.rows = new Rows(this.list);
    this.ready = false;
    this.tell(undefined);
    this.poster.hidden = true;
    const src = this.getAttribute("src");
    if (!src) return;
    const mine = new AbortController();
    this.opening = mine;
    try {
      const poster = this.offset("poster");
      const player = await open(src, poster ?? this.offset("at"), mine.signal);
      if (mine.signal.aborted) return;
      this.poster.hidden = poster === undefined || this.hasAttribute("autoplay");
      this.player = player;
      player.subscribe(() => this.player === player && this.draw(player.get()));
      this.setSpeed();
      player.open();
    } catch (error) {
      if (!mine.signal.aborted) this.tell(error);
    }
  }

  /** The offset in an attribute. The first moment is the one before event 1. */
  private offset(name: string): number | undefined {
    const value = this.getAttribute(name);
    return value === null ? undefined : Number(value) || 1;
  }

  private playFromStart(): void {
    this.poster.hidden = true;
    this.player?.playFrom(this.offset("at") ?? 1);
  }

  private setSpeed(): void {
    const speed = Number(this.getAttribute("speed")) || 1;
    const offered = [...this.speedChoice.options].some((o) => o.value === String(speed));
    if (!offered) this.speedChoice.append(element("option", { value: String(speed) }, `${speed}×`));
    this.speedChoice.value = String(speed);
    this.player?.setSpeed(speed);
  }

  private draw(s: DeckState): void {
    this.tell(s.error ?? (s.connection.state === "failed" ? s.connection.error : undefined));
    const { view } = s;
    this.title_.textContent = view?.session.title ?? s.entry?.title ?? s.entry?.id ?? "";
    this.status.textContent = statusOf(s);
    this.playButton.textContent = s.playing ? "Pause" : "Play";
    this.bar.max = String(s.head);
    if (Number(this.bar.value) !== s.at) this.bar.value = String(s.at);
    this.bar.setAttribute("aria-valuetext", `event ${s.at} of ${s.head}`);
    this.time.textContent = position(s);
    this.liveButton.hidden = s.connection.state === "connecting" || s.connection.state === "ended";
    this.liveButton.setAttribute("aria-pressed", String(s.live));
    if (!view) return;
    this.rows.show(view);
    if (this.ready) return;
    this.ready = true;
    this.dispatchEvent(new Event("ready"));
    if (!this.hasAttribute("autoplay")) return;
    if (this.hasAttribute("poster")) this.playFromStart();
    else if (!s.live) this.player?.play();
  }

  private tell(error: unknown): void {
    const message = error instanceof Error ? error.message : error === undefined ? "" : String(error);
    const hint = error instanceof TapedeckError && error.hint ? ` (${error.hint})` : "";
    const text = message + hint;
    if (this.fault.textContent === text) return;
    this.fault.textContent = text;
    this.fault.hidden = text === "";
    if (text) this.dispatchEvent(new ErrorEvent("error", { error, message }));
  }
}

function statusOf({ view, connection }: DeckState): string {
  const parts = [view?.session.status, connection.state === "reconnecting" ? "reconnecting" : undefined];
  return parts.filter(Boolean).join(" · ");
}

/** How far the playhead is, as minutes and seconds; as events where times say nothing. */
function position({ axis, position, length }: DeckState): string {
  if (axis === "events") return `${Math.round(position)} / ${length}`;
  return `${clock(position)} / ${clock(length)}`;
}

function clock(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
