/** Copies a text to the clipboard. If it fails, the error says why. */
export async function copyText(text: string): Promise<void> {
  // Without TLS, browsers offer a clipboard only to pages of localhost.
  if (!navigator.clipboard) throw new Error("Copying needs HTTPS or localhost");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    throw new Error("The browser did not allow copying");
  }
}
