import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { useEffect, useRef, useState } from "react";
import { api } from "@/client";
import { hasKey, press } from "@/hooks/keys";
import { useSettled } from "@/hooks/tick";
import { keyGroups } from "./keys-list";
import { openSession, placesOf } from "./open-session";
import { StatusChip } from "./status";
import { Dialog, errorText, Kbd } from "./ui";

/** What the palette offers: everything, or only places in the open session. */
export type PaletteMode = "all" | "place";

const item =
  "flex cursor-pointer items-center gap-3 rounded-md px-2.5 py-1.5 text-[13px] aria-selected:bg-accent-soft aria-selected:text-text";
const group =
  "[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-semibold [&_[cmdk-group-heading]]:text-muted";

/** Finds sessions, places in the open session, and commands. */
export default function Palette({ wanted, onClose }: { wanted: PaletteMode; onClose: () => void }) {
  const [text, setText] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []); // opening the dialog focuses its first button; then focus the input
  const navigate = useNavigate();
  const q = useSettled(text.trim(), 150);
  const found = useQuery({
    queryKey: ["palette", q],
    queryFn: ({ signal }) => api.sessions({ q: q || undefined, limit: q ? 8 : 4 }, { signal }),
    enabled: wanted === "all",
    placeholderData: (old) => old,
  });
  const current = openSession();
  const places = current ? placesOf(text, current) : [];
  // Close the dialog first: it returns the focus, and shortcuts are off while it is open.
  const run = (act: () => void) => () => {
    onClose();
    setTimeout(act);
  };
  const prompt =
    wanted === "place"
      ? "A turn (3), an offset (#412) or a time (1:35)"
      : "Find a session, a command, a turn or a time";
  const commands = wanted === "all" ? commandsOf(text) : [];
  const sessions = (wanted === "all" && found.data?.sessions) || [];
  const commandItems = <Commands commands={commands} onRun={(name) => run(() => press(name))()} />;
  const none = places.length + commands.length + sessions.length === 0;
  return (
    <Dialog title={wanted === "place" ? "Go to" : "Command palette"} onClose={onClose}>
      <Command label="Command palette" shouldFilter={false} loop className="-m-2">
        <Command.Input
          ref={input}
          value={text}
          onValueChange={setText}
          placeholder={prompt}
          maxLength={200}
          className="mb-2 h-9 w-full rounded-md border border-field bg-bg px-3 text-sm"
        />
        {none && (
          <p role="status" className="px-2.5 py-4 text-center text-[13px] text-muted">
            {text.trim() === "" ? prompt : "No results"}
          </p>
        )}
        <Command.List className="max-h-[50vh] overflow-y-auto" tabIndex={-1} hidden={none}>
          {places.length > 0 && (
            <Command.Group heading="In this session" className={group}>
              {places.map((p) => (
                <Command.Item key={p.key} value={`place ${p.key}`} onSelect={run(p.go)} className={item}>
                  <span className="font-medium">{p.name}</span>
                  <span className="min-w-0 truncate text-muted">{p.hint}</span>
                </Command.Item>
              ))}
            </Command.Group>
          )}
          {text.trim() !== "" && commandItems}
          {sessions.length > 0 && (
            <Command.Group heading="Sessions" className={group}>
              {sessions.map((s) => (
                <Command.Item
                  key={s.id}
                  value={`session ${s.id}`}
                  onSelect={run(
                    () =>
                      void navigate({
                        to: "/s/$id",
                        params: { id: s.id },
                        search: s.agent === "workflow" ? { view: "workflow" } : {},
                      }),
                  )}
                  className={item}
                >
                  <span dir="auto" className="min-w-0 flex-1 truncate">
                    {s.title || s.id}
                  </span>
                  <StatusChip status={s.status ?? "idle"} />
                </Command.Item>
              ))}
            </Command.Group>
          )}
          {text.trim() === "" && commandItems}
        </Command.List>
        {found.isError && (
          <p role="alert" className="px-2.5 pt-2 text-[13px] text-bad">
            {errorText(found.error).message}
          </p>
        )}
      </Command>
    </Dialog>
  );
}

/** The commands of the page that contain these words. */
function commandsOf(text: string): [name: string, what: string][] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return keyGroups
    .flatMap(([, lines]) => lines.flatMap(([, , does]) => does ?? []))
    .filter(([name, what]) => hasKey(name) && words.every((w) => what.toLowerCase().includes(w)));
}

function Commands({ commands, onRun }: { commands: [name: string, what: string][]; onRun: (name: string) => void }) {
  if (commands.length === 0) return null;
  return (
    <Command.Group heading="Commands" className={group}>
      {commands.map(([name, what]) => (
        <Command.Item key={name} value={`command ${name}`} onSelect={() => onRun(name)} className={item}>
          <span className="flex-1">{what}</span>
          <Kbd>{name === " " ? "Space" : name.replace("+g", " G")}</Kbd>
        </Command.Item>
      ))}
    </Command.Group>
  );
}
