/** The largest diagram that the server takes. */
const maxBytes = 8 * 1024 * 1024;

export interface DiagramFile {
  name: string;
  bpmn: string;
}

/** Reads a diagram from a file, in the encoding that its first line names. */
export async function readDiagram(file: File): Promise<DiagramFile> {
  if (file.size > maxBytes)
    throw new Error(`“${file.name}” has ${Math.ceil(file.size / 1024 / 1024)} MiB; a diagram has at most 8`);
  return { name: file.name, bpmn: decode(await file.arrayBuffer()) };
}

const declaration = /^(<\?xml[^>]*?encoding\s*=\s*)(["'])([\w.-]+)\2/;

/** The text of a file. What is sent is UTF-8, and the text says so. */
export function decode(bytes: ArrayBuffer): string {
  const utf8 = new TextDecoder().decode(bytes);
  const encoding = markOf(bytes) ?? declaration.exec(utf8)?.[3]?.toLowerCase();
  if (!encoding || encoding === "utf-8") return utf8;
  try {
    return new TextDecoder(encoding).decode(bytes).replace(declaration, "$1$2UTF-8$2");
  } catch {
    return utf8; // the server says that it does not know the encoding
  }
}

/** The encoding that the byte order mark of UTF-16 names. */
function markOf(bytes: ArrayBuffer): string | undefined {
  const [first, second] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : undefined;
}

/** The name under which a file could be stored. */
export function storedName(file: string): string {
  const base = file.replace(/\.(bpmn20\.xml|bpmn|xml)$/i, "");
  return base.replace(/[^\w.-]+/g, "_").slice(0, 128);
}
