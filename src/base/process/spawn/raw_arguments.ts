/**
 * Reads arguments and variables as the bytes that the kernel passed to this process. The runtimes decode the bytes as
 * UTF-8 and replace invalid bytes by U+FFFD. The name of a file in another encoding would then be the name of another
 * file.
 */
import { readFileSync } from "node:fs";

/**
 * An argument, or a variable written `NAME=value`. `bytes` is set if the text does not represent the original bytes.
 */
export interface RawArgument {
  readonly text: string;
  readonly bytes?: Uint8Array;
}

/** An argument that is not UTF-8. `bytes` is null if the original bytes are not available. */
export interface UnreadableArgument {
  readonly index: number;
  readonly bytes: Uint8Array | null;
}

/** The character that the runtimes write for invalid bytes. Runtimes differ in how many such characters they write. */
const replacement = "\u{fffd}";

/**
 * Returns the last arguments of this process together with their bytes. `texts` are these arguments as the runtime
 * decoded them.
 */
export function rawArguments(texts: readonly string[], file = "/proc/self/cmdline"): RawArgument[] {
  if (!texts.some(hasReplacement)) return texts.map((text) => ({ text }));
  const given = entriesOf(file).slice(-texts.length);
  return texts.map((text, index) => withBytes(text, given[index]));
}

/** Returns the variables whose text differs from the bytes that this process received, as `NAME=value`. */
export function rawVariables(
  variables: Readonly<Record<string, string>>,
  file = "/proc/self/environ",
): RawArgument[] {
  const unclear = Object.entries(variables).filter(([, value]) => hasReplacement(value));
  if (unclear.length === 0) return [];
  const given = entriesOf(file);
  return unclear.map(([name, value]) => {
    const start = Buffer.from(`${name}=`);
    return withBytes(`${name}=${value}`, given.find((entry) => entry.subarray(0, start.length).equals(start)));
  }).filter(({ bytes }) => bytes !== undefined);
}

/**
 * Returns the first argument in `texts` that is not UTF-8; null if all are. `texts` are the last arguments of this
 * process. Without /proc, an argument that contains U+FFFD counts as invalid.
 */
export function unreadableArgument(texts: readonly string[], file = "/proc/self/cmdline"): UnreadableArgument | null {
  if (!texts.some(hasReplacement)) return null;
  const given = entriesOf(file).slice(-texts.length);
  const index = texts.findIndex((text, at) => hasReplacement(text) && !given[at]?.equals(Buffer.from(text)));
  return index === -1 ? null : { index, bytes: given[index] ?? null };
}

/**
 * Returns true if a value is not UTF-8. Also returns true if the value contains U+FFFD and its bytes are not available.
 */
export function isUnreadableVariable(name: string, value: string, file = "/proc/self/environ"): boolean {
  if (!hasReplacement(value)) return false;
  const given = Buffer.from(`${name}=${value}`);
  return !entriesOf(file).some((entry) => entry.equals(given));
}

function hasReplacement(text: string): boolean {
  return text.includes(replacement);
}

/** Adds the bytes to a text if they belong to the text and it does not represent them. */
function withBytes(text: string, bytes: Buffer | undefined): RawArgument {
  if (bytes === undefined || !hasReplacement(text) || bytes.equals(Buffer.from(text))) return { text };
  return comparable(bytes.toString("utf8")) === comparable(text) ? { text, bytes } : { text };
}

function comparable(text: string): string {
  return text.replaceAll(/\u{fffd}+/gu, replacement);
}

/** Returns the entries of a file of /proc; an empty list without /proc. */
function entriesOf(file: string): Buffer[] {
  let content: Buffer;
  try {
    content = readFileSync(file);
  } catch {
    return [];
  }
  const entries: Buffer[] = [];
  for (let start = 0, end = 0; (end = content.indexOf(0, start)) >= 0; start = end + 1) {
    entries.push(content.subarray(start, end));
  }
  return entries;
}
