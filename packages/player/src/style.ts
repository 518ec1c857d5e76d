/** Every colour and size is a variable that the page can set on the element. */
export const style = `
:host {
  --bg: var(--tapedeck-background, #ffffff);
  --fg: var(--tapedeck-text, #1b1b1f);
  --muted: var(--tapedeck-muted, #5d5d68);
  --line: var(--tapedeck-line, #dcdce3);
  --soft: var(--tapedeck-soft, #f4f4f7);
  --accent: var(--tapedeck-accent, #2f5bd0);
  --bad: var(--tapedeck-bad, #b3261e);
  display: block; height: var(--tapedeck-height, 26rem);
  font: var(--tapedeck-font, 14px/1.5 system-ui, sans-serif);
}
:host([hidden]) { display: none; }
@media (prefers-color-scheme: dark) { :host(:not([theme="light"])) { --bg: var(--tapedeck-background, #16161a); --fg: var(--tapedeck-text, #ececf1); --muted: var(--tapedeck-muted, #a5a5b3); --line: var(--tapedeck-line, #33333d); --soft: var(--tapedeck-soft, #212128); --accent: var(--tapedeck-accent, #8fb0ff); --bad: var(--tapedeck-bad, #ff8a80); } }
:host([theme="dark"]) { --bg: var(--tapedeck-background, #16161a); --fg: var(--tapedeck-text, #ececf1); --muted: var(--tapedeck-muted, #a5a5b3); --line: var(--tapedeck-line, #33333d); --soft: var(--tapedeck-soft, #212128); --accent: var(--tapedeck-accent, #8fb0ff); --bad: var(--tapedeck-bad, #ff8a80); }
.player { display: flex; flex-direction: column; height: 100%; box-sizing: border-box; overflow: hidden; color: var(--fg); background: var(--bg); border: 1px solid var(--line); border-radius: 8px; }
header, footer { display: flex; gap: .6em; align-items: center; padding: .4em .8em; border-bottom: 1px solid var(--line); }
footer { border: 0; border-top: 1px solid var(--line); }
header b { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
header span, time { color: var(--muted); font-size: .85em; white-space: nowrap; }
ol { flex: 1; overflow: auto; margin: 0; padding: .8em; list-style: none; overflow-wrap: anywhere; }
.stage { position: relative; display: flex; flex: 1; min-height: 0; }
.poster { position: absolute; inset: 0; display: grid; place-items: center; padding: 0; border: 0; border-radius: 0; background: color-mix(in srgb, var(--bg) 55%, transparent); }
.poster[hidden] { display: none; }
.poster span { display: grid; place-items: center; width: 4.5rem; height: 4.5rem; padding-left: .3rem; box-sizing: border-box; font-size: 2rem; color: var(--bg); background: var(--accent); border-radius: 50%; }
li { margin: 0 0 .8em; white-space: pre-wrap; }
li.user { padding: .5em .8em; background: var(--soft); border-radius: 8px; }
li .who { display: block; color: var(--muted); font-size: .8em; }
li.error, p.error { color: var(--bad); }
p.error { margin: .8em; }
details { border: 1px solid var(--line); border-radius: 6px; padding: .2em .6em; }
summary { cursor: pointer; color: var(--muted); }
pre { margin: .4em 0; padding: .5em; overflow: auto; background: var(--soft); border-radius: 6px; font: .9em/1.4 ui-monospace, monospace; white-space: pre-wrap; }
button, select { font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .1em .6em; cursor: pointer; }
button[aria-pressed="true"] { color: var(--accent); border-color: var(--accent); }
input[type="range"] { flex: 1; min-width: 3em; accent-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
`;
