import { field } from "../ui";

export const speeds = [0.5, 1, 2, 4, 8, 16, 32, 64];

interface Props {
  value: number;
  onChange: (speed: number) => void;
  /** No more than that. */
  most?: number;
}

/** How fast it is played. */
export function Speed({ value, onChange, most = Number.POSITIVE_INFINITY }: Props) {
  return (
    <label className="flex items-center gap-1.5 text-muted">
      Speed
      <select className={`${field} h-7`} value={value} onChange={(e) => onChange(Number(e.target.value))}>
        {speeds
          .filter((s) => s <= most)
          .map((s) => (
            <option key={s} value={s}>
              {s}×
            </option>
          ))}
      </select>
    </label>
  );
}
