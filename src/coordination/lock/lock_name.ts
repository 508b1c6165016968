/** A lock's name as people type it, and as one name in ZooKeeper's tree: `db/nightly` is `db%2Fnightly`. */
import { BatonError } from "../../errors.ts";

/** In UTF-8; with every byte written as %XX it is still a short path. */
export const nameBytesMax = 255;

/** Most names: there is nothing to refuse, and nothing but slashes to encode. */
const plainName = /^[A-Za-z0-9_,:@+=-][A-Za-z0-9_,:@+=./-]{0,254}$/;

const utf8 = new TextEncoder();

/** Throws USAGE for what cannot be a lock's name: empty, over 255 bytes, with control characters, not valid Unicode. */
export function encodeLockName(name: string, thing = "a lock"): string {
  if (plainName.test(name)) return name.replaceAll("/", "%2F");
  const refuse = (why: string) =>
    new BatonError("USAGE", `${JSON.stringify(name)} cannot be the name of ${thing}: ${why}`);
  if (name === "") throw refuse("it is empty");
  const bytes = utf8.encode(name).length;
  if (bytes > nameBytesMax) throw refuse(`it has ${bytes} bytes, and ${nameBytesMax} is the most`);
  // Lists are printed one name to a line, and a line must not move the cursor.
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name)) throw refuse("it contains a control character");
  if (!name.isWellFormed()) throw refuse("it is not valid Unicode");
  if (name === "." || name === "..") return name.replaceAll(".", "%2E");
  let encoded = "";
  for (const character of name) encoded += isPlain(character) ? character : percentEncode(character);
  return encoded;
}

/** The name behind a node of the tree; the node's own name when nothing that this version writes. */
export function decodeLockName(encoded: string): string {
  if (!encoded.includes("%")) return encoded;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** What ZooKeeper takes in a path (PathUtils.validatePath: no surrogates, private use, specials), without ours: % and /. */
function isPlain(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return character !== "/" && character !== "%" && (code < 0xd800 || (code > 0xf8ff && code < 0xfff0));
}

function percentEncode(character: string): string {
  return Array.from(utf8.encode(character), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}
