/**
 * Checks the arguments of the library's functions, because programs in JavaScript have no type checks. A wrong argument
 * throws a BatonError with code USAGE, which names the argument, its value, and what was expected.
 */
import { BatonError } from "../base/errors.ts";
import { didYouMean } from "../base/support/did_you_mean.ts";
import { namedPriorities, type PriorityName } from "../base/support/priority.ts";
import { valueTypeName } from "../base/support/text.ts";

export interface OptionForm {
  readonly expected: string;
  /** The form of the elements, if the value may be an array. A message then names the first wrong element. */
  readonly element?: OptionForm;
  fits(value: unknown): boolean;
}

export type OptionForms<O> = { readonly [Name in keyof Required<O>]: OptionForm };

const isText = (value: unknown) => typeof value === "string";
const isNumberFrom = (least: number) => (value: unknown) => typeof value === "number" && value >= least;
const isWholeFrom = (least: number) => (value: unknown) => Number.isSafeInteger(value) && Number(value) >= least;

export const textForm: OptionForm = { expected: "text", fits: isText };
export const textsForm: OptionForm = arrayForm("texts", textForm);
export const toggleForm: OptionForm = { expected: "true or false", fits: (value) => typeof value === "boolean" };
export const functionForm: OptionForm = { expected: "a function", fits: (value) => typeof value === "function" };
export const signalForm: OptionForm = {
  expected: "an AbortSignal",
  fits: (value) => value instanceof AbortSignal,
};
export const millisecondsForm: OptionForm = { expected: "a number of milliseconds", fits: isNumberFrom(0) };
export const objectForm: OptionForm = {
  expected: "an object",
  fits: (value) => valueTypeName(value) === "Object",
};
export const countForm: OptionForm = { expected: "a whole number from 1", fits: isWholeFrom(1) };
export const retriesForm: OptionForm = { expected: "a whole number from 0", fits: isWholeFrom(0) };
export const priorityForm: OptionForm = {
  expected: listed(["a whole number from 0 to 999", ...Object.keys(namedPriorities).map(quoted)]),
  fits: (value) => typeof value === "number" ? isWholeFrom(0)(value) && value <= 999 : isOneOf(namedPriorities, value),
};

export function arrayForm(what: string, element: OptionForm): OptionForm {
  // The copy also has the elements that are missing in the array.
  const fits = (value: unknown) => Array.isArray(value) && [...value].every((one) => element.fits(one));
  return { expected: `an array of ${what}`, element, fits };
}

/** Describes a time to wait. A negative time is allowed, and has passed already. */
export function waitForm(...words: readonly ("none" | "forever")[]): OptionForm {
  return {
    expected: listed(["a number of milliseconds", ...words.map(quoted)]),
    fits: (value) => typeof value === "number" ? !Number.isNaN(value) : words.some((word) => word === value),
  };
}

export function choiceForm(...words: readonly string[]): OptionForm {
  return { expected: listed(words.map(quoted)), fits: (value) => words.some((word) => word === value) };
}

export function toPriority(priority: PriorityName | number): number {
  return typeof priority === "number" ? priority : namedPriorities[priority];
}

/**
 * Checks the options of a call. Throws USAGE for an option that the function does not have, or for a value of a wrong
 * form.
 */
export function checkOptions<O extends object>(call: string, options: O, forms: OptionForms<O>): void {
  if (!objectForm.fits(options)) {
    throw usageError(call, "the last argument", options, { ...objectForm, expected: "an object with options" });
  }
  const known: Readonly<Record<string, OptionForm>> = forms;
  for (const [name, value] of Object.entries(options)) {
    const form = Object.hasOwn(known, name) ? known[name] : undefined;
    if (form === undefined) {
      throw new BatonError("USAGE", `${call}: there is no option "${name}"${didYouMean(name, Object.keys(known))}`);
    }
    if (value !== undefined && !form.fits(value)) throw usageError(call, name, value, form);
  }
}

export function checkArgument(call: string, name: string, value: unknown, form: OptionForm): void {
  if (!form.fits(value)) throw usageError(call, name, value, form);
}

/**
 * Returns bytes unchanged, and text as UTF-8. Throws USAGE for other values, such as other views and arrays, because it
 * is unclear which bytes they mean.
 */
export function checkedBytes(what: string, value: string | Uint8Array): Uint8Array {
  if (typeof value === "string") return new TextEncoder().encode(value);
  const type = valueTypeName(value);
  if (type === "Uint8Array") return value;
  throw new BatonError("USAGE", `${what} is neither a string nor a Uint8Array, but of type ${type}`);
}

function usageError(call: string, name: string, value: unknown, { expected, element }: OptionForm): BatonError {
  if (element !== undefined && Array.isArray(value)) {
    const at = value.findIndex((one) => !element.fits(one));
    if (at >= 0) return usageError(call, `${name}[${at}]`, value[at], element);
  }
  return new BatonError("USAGE", `${call}: ${name} is ${describeValue(value)}; expected ${expected}`);
}

/** The most characters of a value that a message shows. */
const shownCharactersMax = 100;

/** Describes a value for an error message, such as `"5s"`, `-1`, `undefined`, `an Array`. */
function describeValue(value: unknown): string {
  if (typeof value === "string") return quoted(value.slice(0, shownCharactersMax));
  if (value === null || ["undefined", "number", "bigint", "boolean"].includes(typeof value)) return String(value);
  const type = valueTypeName(value);
  return `${/^[AEIOU]/.test(type) ? "an" : "a"} ${type}`;
}

function listed(words: readonly string[]): string {
  return [words.slice(0, -1).join(", "), words.at(-1)].filter((part) => part !== "").join(" or ");
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

function isOneOf(words: object, value: unknown): boolean {
  return typeof value === "string" && Object.hasOwn(words, value);
}
