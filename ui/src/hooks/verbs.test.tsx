// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { useVerbs } from "./verbs";

afterEach(() => {
  cleanup();
  Reflect.deleteProperty(navigator, "clipboard");
});

function verbs() {
  const notify = vi.fn();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={new QueryClient()}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useVerbs("s", true, false, undefined, notify, vi.fn()), { wrapper });
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
