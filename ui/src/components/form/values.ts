import type { FormField, FormOption, Json, JsonObject } from "@tapedeck/client";
import { isObject } from "@tapedeck/client/fold";

/** The fields of a form in the log, which any writer may have appended. What is no field is left out. */
export function fieldsOf(form: Json | undefined): FormField[] {
  if (!Array.isArray(form)) return [];
  const ids = new Set<string>();
  return form.flatMap((f) => {
    if (!isObject(f) || typeof f.id !== "string" || f.id === "" || ids.has(f.id)) return [];
    ids.add(f.id);
    const field: FormField = { id: f.id, type: typeof f.type === "string" ? f.type : "string" };
    if (typeof f.label === "string") field.label = f.label;
    if (f.required === true) field.required = true;
    if (f.readOnly === true) field.readOnly = true;
    if (f.default !== undefined) field.default = f.default;
    for (const name of ["min", "max", "minLength", "maxLength"] as const)
      if (typeof f[name] === "number") field[name] = f[name];
    if (Array.isArray(f.options)) field.options = f.options.flatMap(optionOf);
    return [field];
  });
}

function optionOf(o: Json): FormOption[] {
  if (!isObject(o) || typeof o.value !== "string") return [];
  return [{ value: o.value, ...(typeof o.label === "string" ? { label: o.label } : {}) }];
}

/** What a person has typed or chosen, by the ids of the fields. */
export type Values = Readonly<Record<string, string | boolean>>;

/** The values of a form that nobody has touched: its defaults. */
export function startValues(fields: FormField[]): Values {
  return Object.fromEntries(fields.map((f) => [f.id, startValue(f)]));
}

function startValue({ type, readOnly, default: d }: FormField): string | boolean {
  if (type === "boolean") return d === true || d === "true";
  if (d === undefined || d === null || (isUnsure(d) && !readOnly)) return "";
  return typeof d === "string" ? d : JSON.stringify(d);
}

/**
 * Whether a number of the log may have lost digits when it was read: JavaScript keeps 15 of them.
 * A field with such a default begins empty, so that the default itself counts, and not what is left of it.
 */
export const isUnsure = (d: Json | undefined): boolean => typeof d === "number" && digitsOf(String(d)).length > 15;

/** Whether JavaScript keeps a number as it was typed. */
export const isKept = (typed: string): boolean => digitsOf(typed) === digitsOf(String(Number(typed)));

const digitsOf = (number: string): string =>
  number
    .replace(/e.*$/i, "")
    .replace(/[-+.]/g, "")
    .replace(/^0+|0+$/g, "");

/** The answer to a form. A field that was left empty is not in it, so its default counts. */
export function inputOf(fields: FormField[], values: Values): JsonObject {
  const input: JsonObject = {};
  for (const f of fields) {
    const value = f.readOnly ? undefined : fieldValue(f, values[f.id]);
    if (value !== undefined) define(input, f.id, value);
  }
  return input;
}

function fieldValue(f: FormField, typed: string | boolean | undefined): Json | undefined {
  if (f.type === "boolean") return typed === true;
  if (typeof typed !== "string" || typed === "") return undefined;
  if (f.type !== "integer" && f.type !== "number") return typed;
  const n = Number(typed);
  return Number.isFinite(n) ? n : typed; // the server says what is wrong with it
}

/** Sets an own member, also if its name is __proto__. */
function define(o: JsonObject, name: string, value: Json): void {
  Object.defineProperty(o, name, { value, enumerable: true, writable: true, configurable: true });
}

/** The JSON object that a text is; undefined if it is empty. */
export function objectIn(text: string): JsonObject | undefined {
  if (text.trim() === "") return undefined;
  let value: Json | undefined;
  try {
    value = JSON.parse(text);
  } catch {
    // not JSON: the same sentence
  }
  if (!isObject(value)) throw new Error('this is not a JSON object, such as {"topic": "moon"}');
  const numbers = text.replace(/"(?:\\.|[^"\\])*"/g, "").match(/-?\d[\d.eE+-]*/g) ?? [];
  const lost = numbers.find((n) => !isKept(n));
  if (lost)
    throw new Error(`the number ${lost.slice(0, 40)} has more digits than a browser keeps; use tapedeck workflow run`);
  return value;
}
