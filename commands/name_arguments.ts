/** Reads the name arguments of commands that show or change one object. */
import { BatonError } from "../src/base/errors.ts";
import { interopLockPath, type InteropRecipe } from "../src/coordination/nodes/interop_node_names.ts";
import { encodeLockName } from "../src/coordination/nodes/node_paths.ts";
import type { CoordinationObjectKind } from "../src/base/rows/object_row.ts";

/**
 * Returns the name that the user gave. Throws USAGE if there is no name, more than one, or an invalid one. `kind` is
 * the kind of object.
 */
export function requireOneName(command: string, names: readonly string[], kind = "lock"): string {
  const [name, ...more] = names;
  if (name !== undefined && more.length === 0) {
    encodeLockName(name, `${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}`); // throws if invalid, before baton connects
    return name;
  }
  const given = name === undefined ? "none is given" : `"${names.join('", "')}" are given`;
  throw new BatonError(
    "USAGE",
    `baton ${command} needs the name of one ${kind}, and ${given}, as in: baton ${command} NAME`,
  );
}

/**
 * Returns the path that the user gave to a command with --recipe. Throws USAGE if there is no path, more than one, or
 * an invalid one.
 */
export function requireOneInteropPath(
  command: string,
  [path, ...more]: readonly string[],
  recipe: InteropRecipe,
): string {
  if (path === undefined || more.length > 0) {
    const example = `as in: baton ${command} --recipe ${recipe} /app/locks`;
    throw new BatonError("USAGE", `baton ${command} --recipe needs one path: the parent node of the locks, ${example}`);
  }
  if (path !== "/") interopLockPath(path);
  return path;
}

/**
 * Returns the end of a message that mentions an object of another kind with the same name; empty if there is no such
 * object. `used` contains the kinds of the objects that have the name.
 */
export function describeOtherKindsWithName(
  used: readonly CoordinationObjectKind[],
  { kind, name, commands = {} }: {
    readonly kind: CoordinationObjectKind;
    readonly name: string;
    /** The command to name for an object of another kind; by default, `baton who`. */
    readonly commands?: Partial<Readonly<Record<CoordinationObjectKind, string>>>;
  },
): string {
  const other = used.find((one) => one !== kind);
  if (other === undefined) return "";
  const article = other === "election" ? "an" : "a";
  const command = commands[other] ?? (other === "lock" ? "who" : `who --kind ${other}`);
  return `; there is ${article} ${other} of this name: baton ${command} ${name}`;
}
