// A page as an application would write it: CopilotKit's own chat on a thread, and
// Tapedeck as its runtime. The address of the page says which thread.
import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2"
import "@copilotkit/react-core/v2/styles.css"
import { createRoot } from "react-dom/client"

const at = new URLSearchParams(location.search)
const steps = at.get("steps")

createRoot(document.getElementById("root")).render(
  <CopilotKitProvider runtimeUrl={at.get("runtime")} properties={steps ? { tapedeck: { config: { steps: JSON.parse(steps) } } } : {}}>
    <CopilotChat agentId={at.get("agent") ?? "default"} threadId={at.get("thread")} />
  </CopilotKitProvider>,
)
