/** Writes output that every POSIX shell can `eval`. Pure. */

/**
 * Returns shell lines that set the variables, sorted by name. If a variable is undefined but set in `current`, the
 * lines unset it.
 */
export function shellExportLines(
  variables: Readonly<Record<string, string | undefined>>,
  current: Readonly<Record<string, string | undefined>>,
): string {
  return Object.entries(variables).sort(([a], [b]) => a < b ? -1 : 1).map(([name, value]) => {
    if (value !== undefined) return `export ${name}=${shellQuote(value)}\n`;
    return current[name] === undefined ? "" : `unset ${name}\n`;
  }).join("");
}

/** Puts the text into single quotes, inside which only a single quote has a special meaning. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Returns a shell line that does nothing but fail with `code`, so that `eval "$(baton hold …)" || exit` ends the
 * script.
 */
export function failingShellLine(code: number): string {
  return `(exit ${code})\n`;
}

/** Returns a name as a user must type it in a shell: quoted only if necessary. */
export function shellQuoteIfNeeded(name: string): string {
  return /^[\p{L}\p{N}_@%+:,./-]+$/u.test(name) ? name : shellQuote(name);
}
