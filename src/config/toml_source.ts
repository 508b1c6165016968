/** TOML as people edit it: smol-toml does the values and the syntax errors, this finds the line of a key. */
import { parse } from "smol-toml";

export function parseTomlSource(source: string): unknown {
  return parse(source);
}

/**
 * The line, counted from 1, on which a dotted key is given its value. The parser keeps no positions, so it is asked again
 * with more and more of the text: a key's statement starts after the last line up to which all is well without it.
 * That is quadratic, which is why it is done for a message only, never for a good file.
 */
export function tomlLineOf(source: string, key: string): number | null {
  const lines = source.split("\n");
  let lastGood = 0;
  for (let count = 1; count <= lines.length; count++) {
    let document: unknown;
    try {
      document = parse(lines.slice(0, count).join("\n"));
    } catch {
      continue; // in the middle of a value of several lines
    }
    if (hasKey(document, key)) return lastGood + 1;
    lastGood = count;
  }
  return null;
}

/** A name in quotation marks may itself contain dots. */
function hasKey(document: unknown, key: string): boolean {
  if (typeof document !== "object" || document === null) return false;
  if (Object.hasOwn(document, key)) return true;
  return Object.entries(document).some(([name, inner]) =>
    key.startsWith(`${name}.`) && hasKey(inner, key.slice(name.length + 1))
  );
}
