/** The one name a command is about. */
import { BatonError } from "../../src/errors.ts";
import { encodeLockName } from "../../src/coordination/lock/lock_name.ts";

/** Throws USAGE for none, for several, and for what cannot be a name. `thing` is what it is the name of. */
export function onlyName(command: string, names: readonly string[], thing = "lock"): string {
  const [name, ...more] = names;
  if (name !== undefined && more.length === 0) {
    encodeLockName(name, `${/^[aeiou]/.test(thing) ? "an" : "a"} ${thing}`); // before anything is asked or started
    return name;
  }
  const given = name === undefined ? "none is given" : `"${names.join('", "')}" are given`;
  throw new BatonError(
    "USAGE",
    `baton ${command} needs the name of one ${thing}, and ${given}, as in: baton ${command} NAME`,
  );
}
