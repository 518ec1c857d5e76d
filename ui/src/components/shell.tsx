import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { Suspense, useCallback, useEffect, useState } from "react";
import { lazyPart } from "@/components/lazy-part";
import { useKeys } from "@/hooks/keys";
import { OpenNewSession } from "@/hooks/new-session";
import { useOnline } from "@/hooks/online";
import { useGoKeys } from "@/hooks/session-keys";
import { toggleTheme, useTheme } from "@/hooks/theme";
import { useViewer } from "@/hooks/viewer";
import { Account } from "./account";
import { blurAfterClick } from "./blur-after-click";
import { InboxLink } from "./inbox-link";
import { NoticeBar } from "./notice-bar";
import { openSession } from "./open-session";
import type { PaletteMode } from "./palette";
import { Button, IconButton } from "./ui";

const KeysHelp = lazyPart(() => import("./keys-help"));
const Palette = lazyPart(() => import("./palette"));
const NewSession = lazyPart(() => import("./new-session"));

/** The frame of every page. */
export function Shell() {
  const theme = useTheme();
  const online = useOnline();
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = useState<PaletteMode>();
  const [starting, setStarting] = useState(false);
  const navigate = useNavigate();
  const reads = useViewer()?.role === "reader";
  const openNew = useCallback(() => setStarting(true), []);
  useKeys({
    n: () => (reads ? false : openNew()),
    "?": () => setHelp(true),
    "Ctrl+k": () => setPalette("all"),
    "Ctrl+g": () => (openSession() ? setPalette("place") : false),
  });
  useGoKeys({
    f: () => void navigate({ to: "/workflows" }),
    u: () => void navigate({ to: "/usage" }),
  });
  useEffect(blurAfterClick, []);
  return (
    <div className="flex h-full flex-col">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-20 focus:bg-panel focus:p-2">
        Skip to content
      </a>
      <header className="not-zen flex min-h-11 shrink-0 flex-wrap items-center gap-x-4 border-b max-sm:gap-x-2 border-line bg-panel px-4">
        <Link to="/" className="flex items-center gap-2 font-semibold tracking-tight">
          <Mark /> Tapedeck
        </Link>
        <nav
          aria-label="Pages"
          className="whitespace-nowrap max-sm:order-last max-sm:-mx-2 max-sm:flex max-sm:w-full max-sm:justify-between max-sm:overflow-x-auto max-sm:text-[13px]"
        >
          <PageLink to="/">Sessions</PageLink>
          <InboxLink />
          <PageLink to="/workflows">Workflows</PageLink>
          <PageLink to="/usage">Usage</PageLink>
          <PageLink to="/import">Import</PageLink>
        </nav>
        <div className="ml-auto flex items-center gap-1">
          {!online && (
            <span role="status" className="rounded-full bg-warn-soft px-2 py-px text-xs font-medium text-warn">
              Offline
            </span>
          )}
          {!reads && (
            <Button look="primary" icon="plus" title="New session (n)" onClick={openNew}>
              <span className="max-sm:sr-only">New session</span>
            </Button>
          )}
          <Account />
          <IconButton
            icon={theme === "dark" ? "sun" : "moon"}
            label={theme === "dark" ? "Light theme" : "Dark theme"}
            onClick={toggleTheme}
          />
          <IconButton icon="help" label="Keyboard shortcuts" keys="?" onClick={() => setHelp(true)} />
        </div>
      </header>
      <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto outline-none">
        <OpenNewSession value={openNew}>
          <Outlet />
        </OpenNewSession>
      </main>
      {palette && (
        <Suspense fallback={null}>
          <Palette wanted={palette} onClose={() => setPalette(undefined)} />
        </Suspense>
      )}
      {starting && (
        <Suspense fallback={null}>
          <NewSession
            onClose={() => setStarting(false)}
            onStarted={(id) => {
              setStarting(false);
              void navigate({ to: "/s/$id", params: { id }, search: {} });
            }}
          />
        </Suspense>
      )}
      <NoticeBar />
      {help && (
        <Suspense fallback={null}>
          <KeysHelp onClose={() => setHelp(false)} />
        </Suspense>
      )}
    </div>
  );
}

function PageLink({ to, children }: { to: "/" | "/workflows" | "/usage" | "/import"; children: string }) {
  return (
    <Link
      to={to}
      activeOptions={{ exact: true, includeSearch: false }}
      className="rounded-md px-2 py-1 text-muted max-sm:px-1.5 hover:bg-raised hover:text-text"
      activeProps={{ className: "text-text font-medium" }}
    >
      {children}
    </Link>
  );
}

function Mark() {
  return (
    <svg
      viewBox="0 0 24 24"
      className="size-6 text-brand"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      aria-hidden="true"
    >
      <rect x="1.5" y="4.5" width="21" height="15" rx="2.5" />
      <circle cx="8" cy="11" r="2.6" />
      <circle cx="16" cy="11" r="2.6" />
      <path d="M10.6 11h2.8M6.5 19.5 8 16h8l1.500 3.500" />
    </svg>
  );
}
