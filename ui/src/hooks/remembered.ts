/**
 * Values in localStorage. Storage may be unavailable: some browsers have none for a
 * page opened from a file, or without an origin.
 */
export const remembered = {
  get: (name: string): string | null => attempt(() => localStorage.getItem(name)) ?? null,
  set: (name: string, value: string): void => void attempt(() => localStorage.setItem(name, value)),
  remove: (name: string): void => void attempt(() => localStorage.removeItem(name)),
};

function attempt<T>(f: () => T): T | undefined {
  try {
    return f();
  } catch {
    return undefined;
  }
}
