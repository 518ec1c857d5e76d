import { field } from "../ui";

export const speeds = [0.5, 1, 2, 4, 8, 16, 32, 64];

interface Props {
  value: number;
  onChange: (speed: number) => void;
  /** The highest speed offered. */
  max?: number;
}

/** The playback speed. */
export function Speed({ value, onChange, max = Number.POSITIVE_INFINITY }: Props) {
  return (
    <label className="flex items-center gap-1.5 text-muted">
      Speed
      <select className={`${field} h-7`} value={value} onChange={(e) => onChange(Number(e.target.value))}>
        {speeds
          .filter((s) => s <= max)
          .map((s) => (
            <option key={s} value={s}>
              {s}×
            </option>
          ))}
      </select>
    </label>
  );
}
