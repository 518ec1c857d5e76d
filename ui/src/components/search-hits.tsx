import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "@/client";

import { ErrorBox } from "./ui";

/** Matches in messages and tool calls, in addition to titles. */
export function SearchHits({ q }: { q: string }) {
  const found = useQuery({
    queryKey: ["search", q],
    queryFn: ({ signal }) => api.search({ q, limit: 20 }, { signal }),
    retry: false,
  });
  if (found.isError) return <div className="p-4">{<ErrorBox error={found.error} />}</div>;
  const hits = found.data?.hits ?? [];
  if (hits.length === 0) return null;
  return (
    <section aria-label="Text matches" className="px-4 py-3">
      <h2 className="py-1 text-xs font-semibold text-muted">
        Text matches: {hits.length}
        {found.data?.next ? " (more are not shown)" : ""}
      </h2>
      <ul>
        {hits.map((h) => (
          <li key={`${h.session} ${h.offset} ${h.kind}`}>
            <Link
              to="/s/$id"
              params={{ id: h.session }}
              search={{ at: h.offset + 1 }}
              className="block rounded-md border-b border-line px-2 py-2 hover:bg-panel"
            >
              <span className="flex gap-2 text-xs text-muted">
                <span className="font-medium text-text">{h.title || h.session}</span>
                <span>{h.role || h.kind}</span>
                <span>offset {h.offset}</span>
                {h.rewound && <span className="text-warn">rewound</span>}
              </span>
              <Snippet text={h.snippet} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The server puts matches between « and ». */
function Snippet({ text }: { text: string }) {
  let at = 0;
  return (
    <span className="line-clamp-2 text-[13px]">
      {text.split(/(«[^»]*»)/).map((part) => {
        const key = at;
        at += part.length;
        return part.startsWith("«") ? (
          <mark key={key} className="bg-accent-soft text-text">
            {part.slice(1, -1)}
          </mark>
        ) : (
          part
        );
      })}
    </span>
  );
}
