/** Checks the name of a message store. The folder of the store has the same name. */
import { BatonError } from "../../base/errors.ts";

/** Throws USAGE if the name is not valid. */
export function checkStoreName(name: string): void {
  if (/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/.test(name)) return;
  const wanted = "1 to 64 letters, digits, dots, dashes and underscores, not starting with a dot";
  throw new BatonError("USAGE", `"${name}" is not a valid name of a message store: use ${wanted}`);
}
