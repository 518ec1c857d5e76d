/** The kinds of code tokens; each has a colour in app.css. */
export const kinds = ["keyword", "string", "comment", "constant", "function", "inserted", "deleted"] as const;
export type Kind = (typeof kinds)[number];
