/** The server puts matches between « and ». */
export function Snippet({ text }: { text: string }) {
  let at = 0;
  return text.split(/(«[^»]*»)/).map((part) => {
    const key = at;
    at += part.length;
    return part.startsWith("«") ? (
      <mark key={key} className="bg-accent-soft text-text">
        {part.slice(1, -1)}
      </mark>
    ) : (
      part
    );
  });
}
