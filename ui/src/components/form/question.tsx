import type { FormField, JsonObject, PermissionOption } from "@tapedeck/client";
import { useState } from "react";
import { visible } from "../conversation/action";
import { pretty } from "../json";
import { Button } from "../ui";
import { FormFields } from "./form-fields";
import { inputOf, startValues } from "./values";

interface Props {
  fields: FormField[];
  options: PermissionOption[];
  busy: boolean;
  disabled: boolean;
  onAnswer: (option: string, input?: JsonObject) => void;
}

/** A question with a form. An option that rejects needs no answer to the fields. */
export function FormQuestion({ fields, options, busy, disabled, onAnswer }: Props) {
  const [values, setValues] = useState(() => startValues(fields));
  const rejects = (o: PermissionOption) => o.kind?.startsWith("reject") ?? false;
  const submits = options.filter((o) => !rejects(o));
  const [first] = submits;
  const submit = (option: string | undefined) => option && onAnswer(option, inputOf(fields, values));
  return (
    <form
      className="mt-3 flex flex-col gap-3"
      onSubmit={(e) => {
        e.preventDefault();
        const { submitter } = e.nativeEvent as SubmitEvent;
        submit((submitter as HTMLButtonElement | null)?.value || first?.id);
      }}
    >
      <FormFields fields={fields} values={values} onChange={setValues} disabled={disabled || busy} />
      <div className="flex flex-wrap gap-2">
        {submits.map((o) => (
          <Button
            key={o.id}
            type="submit"
            value={o.id}
            look={o === first ? "primary" : "plain"}
            busy={busy}
            disabled={disabled}
            className="max-sm:h-11"
          >
            {visible(o.name || o.id)}
          </Button>
        ))}
        {options.filter(rejects).map((o) => (
          <Button
            key={o.id}
            look="danger"
            busy={busy}
            disabled={disabled}
            className="max-sm:h-11"
            onClick={() => onAnswer(o.id)}
          >
            {visible(o.name || o.id)}
          </Button>
        ))}
      </div>
    </form>
  );
}

/** What was answered: the values with the labels of their fields. */
export function FormAnswer({ fields, input }: { fields: FormField[]; input: JsonObject }) {
  const entries = Object.entries(input);
  if (entries.length === 0) return null;
  const labelOf = (id: string) => fields.find((f) => f.id === id)?.label || id;
  const textOf = (id: string, value: unknown) => {
    const option = fields.find((f) => f.id === id)?.options?.find((o) => o.value === value);
    if (option) return option.label || option.value;
    if (typeof value === "boolean") return value ? "yes" : "no";
    return typeof value === "string" ? value : pretty(value);
  };
  return (
    <dl className="mt-1 grid grid-cols-[minmax(0,2fr)_minmax(0,3fr)] gap-x-3 gap-y-0.5 [overflow-wrap:anywhere]">
      {entries.map(([id, value]) => (
        <div key={id} className="contents">
          <dt className="text-muted">{visible(labelOf(id))}</dt>
          <dd className="whitespace-pre-wrap">{visible(textOf(id, value))}</dd>
        </div>
      ))}
    </dl>
  );
}
