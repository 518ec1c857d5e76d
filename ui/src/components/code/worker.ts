// Tokenizes code in a worker: a grammar has hundreds of regular expressions, and
// hostile text of an agent may keep them busy for long.
import { createCssVariablesTheme, createHighlighterCore, type LanguageInput } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import { type Kind, kinds } from "./kinds";
import type { Language } from "./language";

const load: Record<Language, LanguageInput> = {
  bash: () => import("shiki/langs/bash.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
};

const theme = createCssVariablesTheme({ name: "kinds", fontStyle: false });
const highlighter = createHighlighterCore({
  themes: [theme],
  langs: [],
  engine: createJavaScriptRegexEngine({ forgiving: true }),
});

/** The kind for a colour name of the theme; -1 for none. */
function kindOf(colour = ""): number {
  const name = colour.replace(/^var\(--shiki-token-(.*)\)$/, "$1");
  return kinds.indexOf((name === "string-expression" || name === "link" ? "string" : name) as Kind);
}

/** The tokens of a text: from, to and the number of the kind for each. */
async function tokenize(text: string, language: Language): Promise<Int32Array> {
  const h = await highlighter;
  await h.loadLanguage(load[language]);
  const out: number[] = [];
  const lines = h.codeToTokensBase(text, { lang: language, theme: "kinds", tokenizeTimeLimit: 0 });
  for (const t of lines.flat()) {
    const kind = kindOf(t.color);
    if (kind < 0 || t.content.trim() === "") continue;
    const [from, to] = [t.offset, t.offset + t.content.length];
    if (out.at(-1) === kind && out.at(-2) === from) out[out.length - 2] = to;
    else out.push(from, to, kind);
  }
  return Int32Array.from(out);
}

self.onmessage = ({ data }: MessageEvent<{ id: number; text: string; language: Language }>) => {
  tokenize(data.text, data.language).then(
    (tokens) => self.postMessage({ id: data.id, tokens }),
    () => self.postMessage({ id: data.id }),
  );
};
