import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "@/data/api";
import { plural } from "./format";
import { ErrorBox } from "./ui";

/** What was said in sessions, beside their titles. */
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
    <section aria-label="Found in texts" className="px-4 py-3">
      <h2 className="py-1 text-xs font-semibold text-muted">
        In texts: {plural(hits.length, "hit")}
        {found.data?.next ? " and more" : ""}
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

/** What was found stands between « and » in the server's answer. */
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
