/** Checks the name of a message store, which is also the name of its folder. */
import { BatonError } from "../../base/errors.ts";

/** Throws USAGE for an invalid name. */
export function checkStoreName(name: string): void {
  if (/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/.test(name)) return;
  const wanted = "1 to 64 letters, digits, dots, dashes and underscores, not starting with a dot";
  throw new BatonError("USAGE", `"${name}" is not a valid name of a message store: use ${wanted}`);
}
