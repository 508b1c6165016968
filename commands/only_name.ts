/** The one lock a command is about. */
import { BatonError } from "../src/errors.ts";

/** Throws USAGE for none and for several. */
export function onlyName(command: string, names: readonly string[]): string {
  const [name, ...more] = names;
  if (name !== undefined && more.length === 0) return name;
  const given = name === undefined ? "none is given" : `"${names.join('", "')}" are given`;
  throw new BatonError("USAGE", `baton ${command} needs the name of one lock, and ${given}`);
}
