/** The languages with highlighting. Each grammar is loaded with the first text in it. */
export const languages = [
  "bash",
  "css",
  "diff",
  "docker",
  "go",
  "html",
  "java",
  "json",
  "markdown",
  "python",
  "rust",
  "sql",
  "toml",
  "tsx",
  "yaml",
] as const;
export type Language = (typeof languages)[number];

// Names after a code fence, and file extensions.
const aliases: Record<string, Language> = {
  sh: "bash",
  shell: "bash",
  shellscript: "bash",
  zsh: "bash",
  dockerfile: "docker",
  golang: "go",
  htm: "html",
  xml: "html",
  svg: "html",
  vue: "html",
  jsonl: "json",
  ndjson: "json",
  jsonc: "json",
  md: "markdown",
  patch: "diff",
  py: "python",
  python3: "python",
  rs: "rust",
  js: "tsx",
  jsx: "tsx",
  mjs: "tsx",
  cjs: "tsx",
  ts: "tsx",
  mts: "tsx",
  cts: "tsx",
  javascript: "tsx",
  typescript: "tsx",
  scss: "css",
  yml: "yaml",
};

/** The language of a fenced code block, by its name. */
export function languageOf(name: string | undefined): Language | undefined {
  const n = name?.toLowerCase() ?? "";
  return languages.find((l) => l === n) ?? (Object.hasOwn(aliases, n) ? aliases[n] : undefined);
}

/** The language of a file, by its path. */
export function languageOfFile(path: string | undefined): Language | undefined {
  const name = path?.slice(path.lastIndexOf("/") + 1) ?? "";
  return languageOf(name.slice(name.lastIndexOf(".") + 1));
}
