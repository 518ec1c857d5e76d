import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Shell } from "@/components/shell";
import { ErrorBox, Notice } from "@/components/ui";
import { compareSearch, listSearch, sessionSearch, usageSearch, workflowsSearch } from "./search";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Notice title="Page not found">
      <a className="text-accent underline" href="/">
        Back to sessions
      </a>
    </Notice>
  ),
  errorComponent: ({ error, reset }) => (
    <div className="mx-auto max-w-2xl p-8">
      <ErrorBox error={error} onRetry={reset} />
    </div>
  ),
});

const sessions = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import("@/pages/sessions"), "SessionsPage"),
});

const session = createRoute({
  getParentRoute: () => root,
  path: "/s/$id",
  validateSearch: sessionSearch,
  component: lazyRouteComponent(() => import("@/pages/session"), "SessionPage"),
});

const compare = createRoute({
  getParentRoute: () => root,
  path: "/compare",
  validateSearch: compareSearch,
  component: lazyRouteComponent(() => import("@/pages/compare"), "ComparePage"),
});

const inbox = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  component: lazyRouteComponent(() => import("@/pages/inbox"), "InboxPage"),
});

const usage = createRoute({
  getParentRoute: () => root,
  path: "/usage",
  validateSearch: usageSearch,
  component: lazyRouteComponent(() => import("@/pages/usage"), "UsagePage"),
});

const imports = createRoute({
  getParentRoute: () => root,
  path: "/import",
  component: lazyRouteComponent(() => import("@/pages/import"), "ImportPage"),
});

const workflows = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  validateSearch: workflowsSearch,
  component: lazyRouteComponent(() => import("@/pages/workflows"), "WorkflowsPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([sessions, session, inbox, usage, compare, imports, workflows]),
  defaultPreload: false,
  scrollRestoration: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
