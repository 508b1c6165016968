/** Arguments that a program in JavaScript may have mistaken, and that would be stored as other bytes, or never end a wait. */
import { BatonError } from "../errors.ts";

/** Returns text as UTF-8. Throws USAGE for anything but text and bytes: other views and arrays have no bytes that were meant. */
export function checkedBytes(what: string, value: string | Uint8Array): Uint8Array {
  if (typeof value === "string") return new TextEncoder().encode(value);
  const type = typeName(value);
  if (type === "Uint8Array") return value;
  throw new BatonError("USAGE", `${what} is neither a string nor a Uint8Array, but of type ${type}`);
}

/** Throws USAGE for a time that would not end a wait, such as "5s" or NaN. A negative number is a time that is over. */
export function checkWait(wait: unknown): void {
  if (wait === undefined || wait === "none" || wait === "forever") return;
  if (typeof wait === "number" && !Number.isNaN(wait)) return;
  const value = typeof wait === "string" ? JSON.stringify(wait) : typeof wait === "number" ? "NaN" : typeName(wait);
  throw new BatonError("USAGE", `wait is ${value}; expected a number of milliseconds, or a word that the option has`);
}

/** Throws USAGE for anything but a function. */
export function checkFunction(what: string, value: unknown): void {
  if (typeof value !== "function") throw new BatonError("USAGE", `${what} is not a function, but ${typeName(value)}`);
}

/** "Number", "DataView", "Undefined" …; that of Buffer is Uint8Array. */
function typeName(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}
