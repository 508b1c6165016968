/** Variables as lines that every POSIX shell takes in with `eval`. Pure. */

/** `undefined` takes a variable away, where it is set in `current`. In the order of the names. */
export function shellLines(
  variables: Readonly<Record<string, string | undefined>>,
  current: Readonly<Record<string, string | undefined>>,
): string {
  return Object.entries(variables).sort(([a], [b]) => a < b ? -1 : 1).map(([name, value]) => {
    if (value !== undefined) return `export ${name}=${quoted(value)}\n`;
    return current[name] === undefined ? "" : `unset ${name}\n`;
  }).join("");
}

/** In single quotes everything is itself, but a single quote. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command that fails with `code` and does nothing else: `eval "$(baton hold …)" || exit` then ends there. */
export function failingLine(code: number): string {
  return `(exit ${code})\n`;
}
