import { type ComponentProps, lazy, Suspense } from "react";
import { Loading } from "../ui";

const Terminal = lazy(() => import("./terminal"));

/** The terminals of a session; what reads them is loaded with the first look. */
export function TerminalTab(p: ComponentProps<typeof Terminal>) {
  return (
    <Suspense fallback={<Loading what="the terminal" />}>
      <Terminal {...p} />
    </Suspense>
  );
}
