/** The items of a pool as text, from wherever they come, each source with a limit. */
import { createReadStream, readFileSync, statSync } from "node:fs";
import process from "node:process";
import { stdinWasClosed } from "../../src/process/spawn/closed_stdin.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { itemsBytesMax, listedItems, parseItems } from "../../src/coordination/pool/pool_items.ts";
import type { PoolPath } from "../../src/coordination/pool/pool_path.ts";
import { abortable } from "../../src/support/abort.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { lineNotUtf8 } from "../../src/support/text.ts";
import type { ItemSource } from "./pool_options.ts";

export interface ReadItemsOptions {
  readonly component: string;
  readonly path: PoolPath | null;
  readonly signal: AbortSignal;
  /** What the query prints. */
  readonly query: (line: string) => Promise<string>;
}

/** Rejects BAD_DATA for what cannot be items, IO for what cannot be read, the query's failure, the signal's reason. */
export async function readItems(
  source: ItemSource,
  { component, path, signal, query }: ReadItemsOptions,
): Promise<readonly string[]> {
  const items = (text: string, name: string) => parseItems(text, { component, path, source: name });
  switch (source.kind) {
    case "stdin":
      if (stdinWasClosed()) {
        const why = "it was closed when baton was started; </dev/null is a list without items";
        throw new BatonError("IO", `Cannot read the items from standard input: ${why}`);
      }
      return items(await abortable(readText(process.stdin, "standard input"), signal), "standard input");
    case "file":
      return items(
        plainFile(source.file) ?? await abortable(readText(createReadStream(source.file), source.file), signal),
        source.file,
      );
    case "list":
      return parseItems(listedItems(source.list), { component, path, source: "--items", unit: "item" });
    case "query":
      return items(await query(source.line), "the output of --query");
  }
}

/** At once, while others wait for the component; null for a pipe, whose writer may be slow, and what has to be told. */
function plainFile(file: string): string | null {
  try {
    const stat = statSync(file);
    return stat.isFile() && stat.size <= itemsBytesMax ? textOf(readFileSync(file), file) : null;
  } catch (thrown) {
    if (thrown instanceof BatonError) throw thrown;
    return null;
  }
}

/** Not with a mark in the place of what is no UTF-8: names that differ there would share a lock. Throws BAD_DATA. */
export function textOf(bytes: Uint8Array, name: string): string {
  const line = lineNotUtf8(bytes);
  if (line === null) return new TextDecoder().decode(bytes);
  throw new BatonError("BAD_DATA", `${name}, line ${line}: the name of an item is text in UTF-8, and this is none`);
}

/** Rejects BAD_DATA for more than items can be. Whoever writes is not read any further then. */
export async function readText(chunks: AsyncIterable<Uint8Array>, name: string): Promise<string> {
  const read: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of chunks) {
      length += chunk.length;
      if (length > itemsBytesMax) throw new BatonError("BAD_DATA", `${name} is longer than ${itemsBytesMax} bytes`);
      read.push(chunk);
    }
  } catch (thrown) {
    if (thrown instanceof BatonError) throw thrown;
    throw new BatonError("IO", `Cannot read the items from ${name}: ${messageOf(thrown)}`, { cause: thrown });
  }
  return textOf(Buffer.concat(read), name);
}

/** Why there is no list. */
export function queryFailure(line: string, why: string): BatonError {
  return new BatonError("IO", `--query ${JSON.stringify(line)} named no items: ${why}`);
}

export function ranTooLong(timeoutMs: number): string {
  return `it ran longer than ${formatDuration(timeoutMs)} (--query-timeout) and was stopped`;
}
