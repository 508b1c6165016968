/** Output that every POSIX shell reads back with `eval`. Pure. */

/** Lines that set the variables, sorted by name. `undefined` unsets one that is set in `current`. */
export function shellExportLines(
  variables: Readonly<Record<string, string | undefined>>,
  current: Readonly<Record<string, string | undefined>>,
): string {
  return Object.entries(variables).sort(([a], [b]) => a < b ? -1 : 1).map(([name, value]) => {
    if (value !== undefined) return `export ${name}=${shellQuote(value)}\n`;
    return current[name] === undefined ? "" : `unset ${name}\n`;
  }).join("");
}

/** The text in single quotes, where only a single quote has a meaning. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command that fails with `code` and does nothing else: `eval "$(baton hold …)" || exit` then ends there. */
export function failingShellLine(code: number): string {
  return `(exit ${code})\n`;
}

/** A name as a user has to type it in a shell: quoted only where it needs to be. */
export function shellQuoteIfNeeded(name: string): string {
  return /^[\p{L}\p{N}_@%+:,./-]+$/u.test(name) ? name : shellQuote(name);
}
