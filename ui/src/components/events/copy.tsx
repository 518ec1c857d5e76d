import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Button } from "../ui";

/** Puts a text on the clipboard, and says on itself whether that went well. */
export function CopyButton({ text, children }: { text: () => string | Promise<string>; children: ReactNode }) {
  const copy = useMutation({
    mutationFn: async () => {
      // Browsers give no clipboard to pages of another machine without TLS.
      if (!navigator.clipboard) throw new Error("The browser lets nothing be copied here");
      await navigator.clipboard.writeText(await text());
    },
  });
  return (
    <>
      <Button look="ghost" onClick={() => copy.mutate()} busy={copy.isPending} title={copy.error?.message}>
        {copy.isSuccess ? "Copied" : copy.isError ? "Not copied" : children}
      </Button>
      <span role="status" className="sr-only">
        {copy.isSuccess ? "Copied" : (copy.error?.message ?? "")}
      </span>
    </>
  );
}
