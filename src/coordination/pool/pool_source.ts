/** Reads the items of a pool from standard input, a file, the command line, or the output of a query. */
import { createReadStream, readFileSync, statSync } from "node:fs";
import process from "node:process";
import { wasStreamClosedAtStart } from "../../base/process/spawn/inherited_descriptors.ts";
import { BatonError, systemCallErrorReason } from "../../base/errors.ts";
import { ParsedPoolItems, parsePoolItems, poolItemsBytesMax, type PoolPath } from "./pool_path.ts";
import { rejectOnAbort } from "../../base/support/abort.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { firstNonUtf8Line } from "../../base/support/text.ts";
import { WholeLines } from "../../base/support/whole_lines.ts";

export type PoolItemSource =
  | { readonly kind: "stdin" }
  | { readonly kind: "file"; readonly file: string }
  | { readonly kind: "list"; readonly list: string }
  | { readonly kind: "query"; readonly line: string };

export interface ReadPoolItemsOptions {
  readonly component: string;
  readonly path: PoolPath | null;
  readonly signal: AbortSignal;
  readonly query: (line: string) => Promise<string>;
}

/** Reads the items. Rejects with BAD_DATA for invalid items, IO for a read error, or with the reason of the signal. */
export async function readPoolItems(
  source: PoolItemSource,
  { component, path, signal, query }: ReadPoolItemsOptions,
): Promise<readonly string[]> {
  const items = (text: string, name: string) => parsePoolItems(text, { component, path, source: name });
  switch (source.kind) {
    case "stdin":
      checkStdin();
      return items(await rejectOnAbort(readPoolItemText(process.stdin, stdinName), signal), stdinName);
    case "file":
      return items(
        readRegularFile(source.file) ??
          await rejectOnAbort(readPoolItemText(createReadStream(source.file), source.file), signal),
        source.file,
      );
    case "list":
      return parsePoolItems(source.list.replaceAll(",", "\n"), { component, path, source: "--items", unit: "item" });
    case "query":
      return items(await query(source.line), "the output of --query");
  }
}

const stdinName = "standard input";

/** Throws IO if stdin was closed when this process started. */
function checkStdin(): void {
  if (!wasStreamClosedAtStart(0)) return;
  const why = "it is closed; use </dev/null for an empty list";
  throw new BatonError("IO", `Cannot read the items from ${stdinName}: ${why}`);
}

/** Yields the items of `chunks` in batches, as they come. Throws like `readPoolItems`. */
export async function* readPoolItemsAsTheyCome(
  { component, path, chunks }: Pick<ReadPoolItemsOptions, "component" | "path"> & {
    /** Standard input by default. */
    readonly chunks?: AsyncIterable<Uint8Array>;
  },
): AsyncGenerator<readonly string[], void, void> {
  if (chunks === undefined) checkStdin();
  const earlier = new ParsedPoolItems();
  const whole = new WholeLines("");
  const parse = (lines: Uint8Array) =>
    parsePoolItems(
      decodePoolItemText(lines, stdinName, earlier.lines),
      { component, path, source: stdinName },
      earlier,
    );
  for await (const chunk of readItemChunks(chunks ?? process.stdin, stdinName)) yield parse(whole.take(chunk));
  yield parse(whole.end());
}

/** Reads a regular file synchronously, because other calls wait for the component. Returns null for other files. */
function readRegularFile(file: string): string | null {
  try {
    const stat = statSync(file);
    return stat.isFile() && stat.size <= poolItemsBytesMax ? decodePoolItemText(readFileSync(file), file) : null;
  } catch (thrown) {
    if (thrown instanceof BatonError) throw thrown;
    return null;
  }
}

/** Decodes UTF-8. Throws BAD_DATA for other bytes, because replacing them would give different items the same lock. */
export function decodePoolItemText(bytes: Uint8Array, name: string, earlierLines = 0): string {
  const line = firstNonUtf8Line(bytes);
  if (line === null) return new TextDecoder().decode(bytes);
  throw new BatonError(
    "BAD_DATA",
    `${name}, line ${earlierLines + line}: item names must be UTF-8, and this line is not`,
  );
}

/** Reads the whole text. Rejects with BAD_DATA as soon as the text is longer than the limit. */
export async function readPoolItemText(chunks: AsyncIterable<Uint8Array>, name: string): Promise<string> {
  const read: Uint8Array[] = [];
  for await (const chunk of readItemChunks(chunks, name)) read.push(chunk);
  return decodePoolItemText(Buffer.concat(read), name);
}

async function* readItemChunks(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  let length = 0;
  try {
    for await (const chunk of chunks) {
      length += chunk.length;
      if (length > poolItemsBytesMax) {
        throw new BatonError("BAD_DATA", `${name} is longer than ${poolItemsBytesMax} bytes`);
      }
      yield chunk;
    }
  } catch (thrown) {
    if (thrown instanceof BatonError) throw thrown;
    throw new BatonError("IO", `Cannot read the items from ${name}: ${systemCallErrorReason(thrown)}`, {
      cause: thrown,
    });
  }
}

export function itemQueryError(line: string, why: string): BatonError {
  return new BatonError("IO", `--query ${JSON.stringify(line)} failed: ${why}`);
}

export function itemQueryTimeoutMessage(timeoutMs: number): string {
  return `it was stopped after ${formatDuration(timeoutMs)} (--query-timeout)`;
}
