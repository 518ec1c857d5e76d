// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { Marker, ReplayIndex } from "@tapedeck/client";
import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { useVerbs } from "./verbs";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  Reflect.deleteProperty(navigator, "clipboard");
});

function verbs(markers: Partial<Marker>[] = []) {
  const index = { markers, invocations: [] } as unknown as ReplayIndex;
  const notify = vi.fn();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={new QueryClient()}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useVerbs("s", true, false, index, notify, vi.fn()), { wrapper });
  return { verbs: result.current, notify };
}

const clipboard = (writeText: (text: string) => Promise<void>) =>
  Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });

it("copies a link to an offset", async () => {
  const writeText = vi.fn(async () => undefined);
  clipboard(writeText);
  const { verbs: v, notify } = verbs();
  act(() => v.link(7));
  await waitFor(() => expect(notify).toHaveBeenCalledWith("Link copied"));
  expect(writeText).toHaveBeenCalledWith(expect.stringMatching(/\?at=7$/));
});

it("says why a link was not copied", async () => {
  const { verbs: v, notify } = verbs();
  act(() => v.link(7));
  await waitFor(() => expect(notify).toHaveBeenCalledWith("Copying needs HTTPS or localhost"));
  clipboard(() => Promise.reject(new DOMException("no", "NotAllowedError")));
  act(() => v.link(7));
  await waitFor(() => expect(notify).toHaveBeenCalledWith("The browser did not allow copying"));
});

it("says that Undo restores events, and that Redo reverts them again", async () => {
  const jumps: Partial<Marker>[] = [
    { kind: "rewind", offset: 10, to_offset: 4 },
    { kind: "rewind", offset: 11, to_offset: 10 },
    { kind: "rewind", offset: 12, to_offset: 11 },
  ];
  const says = async (count: number, marker?: string) => {
    const undone = jumps[count - 1]?.offset;
    vi.stubGlobal("fetch", async () => Response.json({ to_offset: undone }));
    const { verbs: v, notify } = verbs(jumps.slice(0, count));
    act(() => v.undo.mutate(marker));
    await waitFor(() => expect(notify).toHaveBeenCalled());
    return notify.mock.lastCall?.[0];
  };
  expect(await says(1)).toBe("Restored");
  expect(await says(2)).toBe("Reverted again. Undo restores it.");
  expect(await says(3)).toBe("Restored");
  expect(await says(2, "rew_2")).toBe("Restored"); // a branch of reverted events, restored by name
});
