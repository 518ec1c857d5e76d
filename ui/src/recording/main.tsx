import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import "../app.css";
import { applyTheme } from "../hooks/theme";
import { Recording } from "./page";

applyTheme();

// Queries must not wait for a network: all data is in the page.
const always = { networkMode: "always", retry: false, staleTime: Number.POSITIVE_INFINITY } as const;
const client = new QueryClient({ defaultOptions: { queries: always } });

const root = document.getElementById("root");
if (!root) throw new Error("the page has no #root");
createRoot(root).render(
  <QueryClientProvider client={client}>
    <Recording />
  </QueryClientProvider>,
);
