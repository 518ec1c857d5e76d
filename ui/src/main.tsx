import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./app.css";
import { tokenizer } from "./components/code/tokens";
import { applyTheme } from "./hooks/theme";
import { router } from "./router";

applyTheme();
// Set here because a recording, which is one file, has no workers.
tokenizer.setWorkerFactory(
  () => new Worker(new URL("./components/code/worker.ts", import.meta.url), { type: "module" }),
);

const client = new QueryClient({
  defaultOptions: { queries: { retry: 1, staleTime: 2_000, refetchOnWindowFocus: false } },
});

const root = document.getElementById("root");
if (!root) throw new Error("the page has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
