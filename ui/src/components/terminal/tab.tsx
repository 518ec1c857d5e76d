import { type ComponentProps, Suspense } from "react";
import { lazyPart } from "@/components/lazy-part";
import { Loading } from "../ui";

const Terminal = lazyPart(() => import("./terminal"));

/** The terminals of a session. Their code is loaded when the tab is first opened. */
export function TerminalTab(p: ComponentProps<typeof Terminal>) {
  return (
    <Suspense fallback={<Loading what="the terminal" />}>
      <Terminal {...p} />
    </Suspense>
  );
}
