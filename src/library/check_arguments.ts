/**
 * Arguments that a program in JavaScript may have mistaken, and that would be stored as other bytes, or never end a
 * wait.
 */
import { BatonError } from "../base/errors.ts";
import { valueTypeName } from "../base/support/text.ts";

/**
 * Returns text as UTF-8. Throws USAGE for anything but text and bytes: other views and arrays have no bytes that were
 * meant.
 */
export function checkedBytes(what: string, value: string | Uint8Array): Uint8Array {
  if (typeof value === "string") return new TextEncoder().encode(value);
  const type = valueTypeName(value);
  if (type === "Uint8Array") return value;
  throw new BatonError("USAGE", `${what} is neither a string nor a Uint8Array, but of type ${type}`);
}

/** Throws USAGE for anything but a function. */
export function checkFunction(what: string, value: unknown): void {
  if (typeof value !== "function") {
    throw new BatonError("USAGE", `${what} is not a function, but ${valueTypeName(value)}`);
  }
}
