import type { FormField } from "@tapedeck/client";
import { type ChangeEvent, useId } from "react";
import { visible } from "../conversation/action";
import { field as fieldLook } from "../ui";
import { isKept, isUnsure, type Values } from "./values";

interface Props {
  fields: FormField[];
  values: Values;
  onChange: (values: Values) => void;
  disabled?: boolean;
}

/** The fields of a question or of the start of a workflow. */
export function FormFields({ fields, values, onChange, disabled }: Props) {
  return (
    <div className="flex flex-col gap-3">
      {fields.map((f) => (
        <Field
          key={f.id}
          field={f}
          value={values[f.id] ?? ""}
          disabled={disabled}
          onChange={(v) => onChange({ ...values, [f.id]: v })}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  field: FormField;
  value: string | boolean;
  disabled?: boolean;
  onChange: (v: string | boolean) => void;
}

function Field({ field: f, value, disabled, onChange }: FieldProps) {
  const id = useId();
  const label = visible(f.label || f.id);
  if (f.type === "boolean")
    return (
      <label className="flex min-h-8 items-center gap-2 [overflow-wrap:anywhere]">
        <input
          type="checkbox"
          className="size-4 shrink-0 accent-accent"
          checked={value === true}
          disabled={disabled || f.readOnly}
          onChange={(e) => onChange(e.target.checked)}
        />
        {label}
      </label>
    );
  const hint = hintOf(f);
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="font-medium [overflow-wrap:anywhere]">
        {label}
        {!f.required && !f.readOnly && <span className="font-normal text-muted"> (optional)</span>}
      </label>
      <Control
        id={id}
        field={f}
        value={String(value)}
        disabled={disabled}
        onChange={onChange}
        described={hint ? `${id}-hint` : undefined}
      />
      {hint && (
        <p id={`${id}-hint`} className="text-xs text-muted">
          {hint}
        </p>
      )}
    </div>
  );
}

const tooLong = "This number has more digits than a browser keeps. Answer with: tapedeck answer";

const kinds: Record<string, string> = { integer: "number", number: "number", date: "date" };

function Control({
  id,
  field: f,
  value,
  disabled,
  onChange,
  described,
}: Omit<FieldProps, "value"> & { id: string; value: string; described?: string }) {
  const common = {
    id,
    value,
    disabled,
    required: f.required && !f.readOnly && !isUnsure(f.default),
    "aria-describedby": described,
    onChange: (e: { target: { value: string } }) => onChange(e.target.value),
  };
  const look = `${fieldLook} w-full max-w-md max-sm:h-11`;
  if (f.type === "enum" && f.options?.length)
    return (
      <select {...common} className={look} disabled={disabled || f.readOnly}>
        {(value === "" || !f.required) && <option value="">{f.required ? "Choose one" : "–"}</option>}
        {f.options.map((o) => (
          <option key={o.value} value={o.value}>
            {visible(o.label || o.value)}
          </option>
        ))}
      </select>
    );
  const lengths = { minLength: f.minLength, maxLength: f.maxLength, readOnly: f.readOnly };
  if (f.type === "text")
    return <textarea {...common} {...lengths} rows={3} className={`${look} h-auto! min-h-16 max-w-xl! py-1.5`} />;
  const kind = kinds[f.type] ?? "text";
  const numbers = kind === "number" ? { min: f.min, max: f.max, step: f.type === "integer" ? 1 : "any" } : {};
  const onNumber = (e: ChangeEvent<HTMLInputElement>) => {
    e.target.setCustomValidity(isKept(e.target.value) ? "" : tooLong);
    onChange(e.target.value);
  };
  return (
    <input
      {...common}
      {...lengths}
      {...numbers}
      {...(kind === "number" ? { onChange: onNumber } : {})}
      type={kind}
      className={look}
      autoComplete="off"
    />
  );
}

function hintOf(f: FormField): string {
  if (f.readOnly) return "For information. It cannot be changed.";
  if (isUnsure(f.default)) return "Leave it empty to keep the default, which has more digits than a browser shows";
  if (f.min !== undefined && f.max !== undefined) return `From ${f.min} to ${f.max}`;
  if (f.min !== undefined) return `${f.min} or more`;
  if (f.max !== undefined) return `${f.max} or less`;
  return f.maxLength !== undefined && f.maxLength <= 500 ? `At most ${f.maxLength} characters` : "";
}
