import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { copyText } from "@/hooks/clipboard";
import { Button } from "../ui";

/** Copies a text to the clipboard, and shows the outcome as its label. */
export function CopyButton({ text, children }: { text: () => string | Promise<string>; children: ReactNode }) {
  const copy = useMutation({
    mutationFn: async () => copyText(await text()),
  });
  return (
    <>
      <Button look="ghost" onClick={() => copy.mutate()} busy={copy.isPending} title={copy.error?.message}>
        {copy.isSuccess ? "Copied" : copy.isError ? "Copy failed" : children}
      </Button>
      <span role="status" className="sr-only">
        {copy.isSuccess ? "Copied" : (copy.error?.message ?? "")}
      </span>
    </>
  );
}
