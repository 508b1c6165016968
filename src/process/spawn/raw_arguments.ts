/**
 * Arguments and variables as the kernel handed them to this process. The runtimes read both as UTF-8 and put U+FFFD where
 * they are none: a file name in another encoding would come out as the name of another file.
 */
import { readFileSync } from "node:fs";

/** A text, and its bytes where the text does not say them. */
export interface Word {
  readonly text: string;
  readonly bytes?: Uint8Array;
}

/** A text that the runtime could not read as it was given. `bytes` is null where nothing tells what was given. */
export interface Unreadable {
  readonly index: number;
  readonly bytes: Uint8Array | null;
}

/** What the runtimes write for bytes that are no character; how many of them for how many bytes differs. */
const replacement = "\u{fffd}";

/** The last of this process's arguments, which `texts` are as far as the runtime could read them. */
export function rawArguments(texts: readonly string[], file = "/proc/self/cmdline"): Word[] {
  if (!texts.some(isDoubtful)) return texts.map((text) => ({ text }));
  const given = entriesOf(file).slice(-texts.length);
  return texts.map((text, index) => wordOf(text, given[index]));
}

/** Those of `variables` whose value is not what this process was given, as `NAME=value`. */
export function rawVariables(
  variables: Readonly<Record<string, string>>,
  file = "/proc/self/environ",
): Word[] {
  const doubtful = Object.entries(variables).filter(([, value]) => isDoubtful(value));
  if (doubtful.length === 0) return [];
  const given = entriesOf(file);
  return doubtful.map(([name, value]) => {
    const start = Buffer.from(`${name}=`);
    return wordOf(`${name}=${value}`, given.find((entry) => entry.subarray(0, start.length).equals(start)));
  }).filter(({ bytes }) => bytes !== undefined);
}

/**
 * The first of this process's last arguments, which `texts` are, that is not UTF-8. U+FFFD itself may be given; without
 * /proc nothing tells it from bytes that are no character, and it counts as those.
 */
export function unreadableArgument(texts: readonly string[], file = "/proc/self/cmdline"): Unreadable | null {
  if (!texts.some(isDoubtful)) return null;
  const given = entriesOf(file).slice(-texts.length);
  const index = texts.findIndex((text, at) => isDoubtful(text) && !given[at]?.equals(Buffer.from(text)));
  return index === -1 ? null : { index, bytes: given[index] ?? null };
}

/** Whether the value of the variable is not UTF-8, or contains U+FFFD where nothing tells whether it is. */
export function isUnreadableVariable(name: string, value: string, file = "/proc/self/environ"): boolean {
  if (!isDoubtful(value)) return false;
  const given = Buffer.from(`${name}=${value}`);
  return !entriesOf(file).some((entry) => entry.equals(given));
}

function isDoubtful(text: string): boolean {
  return text.includes(replacement);
}

/** With the bytes where they stand for this text and the text does not stand for them. */
function wordOf(text: string, bytes: Buffer | undefined): Word {
  if (bytes === undefined || !isDoubtful(text) || bytes.equals(Buffer.from(text))) return { text };
  return comparable(bytes.toString("utf8")) === comparable(text) ? { text, bytes } : { text };
}

function comparable(text: string): string {
  return text.replaceAll(/\u{fffd}+/gu, replacement);
}

/** Empty where there is no /proc: the texts are then all there is. */
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
