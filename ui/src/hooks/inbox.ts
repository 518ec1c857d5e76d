import { useQuery } from "@tanstack/react-query";
import type { InboxQuestion } from "@tapedeck/client";
import { useEffect, useState } from "react";
import { api } from "@/client";

/** How often the inbox is requested again. */
const refreshMs = 3_000;

export const inboxKey = ["inbox"];

/** The newest questions that wait for people, in all sessions. They stay up to date also in a tab in the background. */
export function useInbox({ enabled = true } = {}) {
  return useQuery({
    enabled,
    queryKey: inboxKey,
    queryFn: ({ signal }) => api.inbox({ limit: 100 }, { signal }),
    refetchInterval: refreshMs,
    refetchIntervalInBackground: true,
    retry: false,
  });
}

/** How long a page has for its own first requests. */
const firstMs = 1_000;

/** The inbox for the frame of a page, which asks for it after the page has asked for its own content. */
export function useInboxLater() {
  const [enabled, setEnabled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setEnabled(true), firstMs);
    return () => clearTimeout(timer);
  }, []);
  return useInbox({ enabled });
}

/** Identifies a question in all sessions. */
export const keyOf = ({ session, question }: InboxQuestion) => `${session.id} ${question.offset} ${question.id}`;

/**
 * Adds the current questions to those that were shown before. What is shown keeps its
 * place, so that no answer meets another question; new ones come first.
 */
export function merged(shown: readonly InboxQuestion[], now: readonly InboxQuestion[]): readonly InboxQuestion[] {
  const have = new Set(shown.map(keyOf));
  const added = now.filter((q) => !have.has(keyOf(q)));
  return added.length === 0 ? shown : [...added, ...shown];
}
