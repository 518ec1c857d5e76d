import { type ComponentProps, Suspense } from "react";
import { lazyPart } from "../lazy-part";
import { Loading } from "../ui";

const Workflow = lazyPart(() => import("./workflow"));

/** The workflow of a session. Its code is loaded when the tab is first opened, and bpmn-js with its diagram. */
export function WorkflowTab(p: ComponentProps<typeof Workflow>) {
  return (
    <Suspense fallback={<Loading what="the workflow" />}>
      <Workflow {...p} />
    </Suspense>
  );
}
