/** What a piece of code can be; each has its colour in app.css. */
export const kinds = ["keyword", "string", "comment", "constant", "function", "inserted", "deleted"] as const;
export type Kind = (typeof kinds)[number];
