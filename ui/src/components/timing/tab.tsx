import { type ComponentProps, Suspense } from "react";
import { lazyPart } from "../lazy-part";
import { Loading } from "../ui";

const Timing = lazyPart(() => import("./timing"));

/** When what happened in a session, and what models were sent. Its code is loaded when the tab is first opened. */
export function TimingTab(p: ComponentProps<typeof Timing>) {
  return (
    <Suspense
      fallback={
        <div className="flex-1">
          <Loading what="the times" />
        </div>
      }
    >
      <Timing {...p} />
    </Suspense>
  );
}
