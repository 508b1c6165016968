/**
 * The paths of the objects: `<root>/<folder>/<name>`, for example `<root>/locks/db%2Fnightly` for the lock
 * `db/nightly`. A lock or an election has its contenders in the child `q` and its holders in the child `h`.
 */
import { BatonError } from "../../base/errors.ts";

export const defaultRootNode = "/baton";

export interface LockPath {
  /** The container of the lock. Its data is the lock's state, and each grant checks its version. */
  readonly lock: string;
  readonly queue: string;
  readonly holders: string;
}

/** The words for the objects of each folder, for messages. */
const kinds = { locks: "a lock", elections: "an election", barriers: "a barrier", gates: "a barrier" } as const;

/**
 * Returns the path of an object. `root` is a ZooKeeper path without a slash at its end. Throws USAGE for an invalid
 * name.
 */
export function coordinationObjectPath(folder: keyof typeof kinds, name: string, root?: string): string {
  return `${coordinationFolderPath(folder, root)}/${encodeLockName(name, kinds[folder])}`;
}

export function lockPath(name: string, root?: string): LockPath {
  return lockPathAt(coordinationObjectPath("locks", name, root));
}

/** Returns the paths of an election, which has the same nodes as a lock. */
export function electionPath(name: string, root?: string): LockPath {
  return lockPathAt(coordinationObjectPath("elections", name, root));
}

/** Returns the parent node of all objects of a kind: a key of `kinds`, or "pools". */
export function coordinationFolderPath(kind: string, root: string = defaultRootNode): string {
  return `${root === "/" ? "" : root}/${kind}`;
}

export function lockPathAt(lock: string): LockPath {
  return { lock, queue: `${lock}/q`, holders: `${lock}/h` };
}

/** Returns the nodes above a path, outermost first, without the root. */
export function ancestorNodePaths(path: string): string[] {
  const names = path.split("/").slice(1, -1);
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
}

/** The longest name, in bytes of UTF-8. The path stays short even if every byte is encoded as %XX. */
export const lockNameBytesMax = 255;

/** Matches most valid names. Of their characters, only slashes must be encoded. */
const plainName = /^[A-Za-z0-9_,:@+=-][A-Za-z0-9_,:@+=./-]{0,254}$/;

const utf8 = new TextEncoder();

/**
 * Returns the node name for a lock's name. Throws USAGE if the name is empty, longer than 255 bytes, contains control
 * characters, or is not valid Unicode.
 */
export function encodeLockName(name: string, kind = "a lock"): string {
  if (plainName.test(name)) return name.replaceAll("/", "%2F");
  const refuse = (why: string) =>
    new BatonError("USAGE", `${JSON.stringify(name)} cannot be the name of ${kind}: ${why}`);
  if (name === "") throw refuse("it is empty");
  const bytes = utf8.encode(name).length;
  if (bytes > lockNameBytesMax) throw refuse(`it has ${bytes} bytes, the maximum is ${lockNameBytesMax}`);
  // Lists print one name per line, so a name must not move the cursor.
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name)) throw refuse("it contains a control character");
  if (!name.isWellFormed()) throw refuse("it is not valid Unicode");
  if (name === "." || name === "..") return name.replaceAll(".", "%2E");
  let encoded = "";
  for (const character of name) encoded += isPlain(character) ? character : percentEncode(character);
  return encoded;
}

/**
 * Returns the lock's name for a node name. If another program has created a node that `encodeLockName` would name
 * differently, returns the node's name, with %XX for forbidden characters. The list can then still be read.
 */
export function decodeLockName(encoded: string): string {
  if (plainName.test(encoded)) return encoded;
  try {
    const name = decodeURIComponent(encoded);
    if (encodeLockName(name) === encoded) return name;
  } catch {
    // This name is shown unchanged, except for forbidden characters.
  }
  return encoded.toWellFormed().replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, percentEncode);
}

/**
 * Returns true for a character that ZooKeeper allows in a path, except % and /. ZooKeeper's PathUtils.validatePath
 * forbids surrogates, private use and specials.
 */
function isPlain(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return character !== "/" && character !== "%" && (code < 0xd800 || (code > 0xf8ff && code < 0xfff0));
}

function percentEncode(character: string): string {
  return Array.from(utf8.encode(character), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}
