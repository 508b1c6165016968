/** The items of a pool where nothing is going to be run: a `--query` runs under no lock, as they are only looked at. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { BatonError, messageOf } from "../../src/errors.ts";
import { itemsBytesMax } from "../../src/recipes/pool/pool_items.ts";
import type { PoolStatusOptions } from "./pool_options.ts";
import { readItems, textOf } from "./pool_source.ts";

/** The items that are named; null for all. Rejects as `readItems` does. */
export async function namedItems(
  { component, items }: PoolStatusOptions,
  queryTimeoutMs: number,
): Promise<readonly string[] | null> {
  if (items === null) return null;
  return await readItems(items, {
    component,
    signal: new AbortController().signal, // whoever has enough of it ends it by its default action
    query: (line) => outputOf(line, queryTimeoutMs),
  });
}

/** Rejects IO when it fails, prints too much, or takes longer than `timeoutMs`. */
async function outputOf(line: string, timeoutMs: number): Promise<string> {
  try {
    const options = { timeout: timeoutMs, maxBuffer: itemsBytesMax, encoding: "buffer" } as const;
    return textOf((await promisify(execFile)("/bin/sh", ["-c", line], options)).stdout, "the output of --query");
  } catch (thrown) {
    if (thrown instanceof BatonError) throw thrown;
    throw new BatonError("IO", `--query ${JSON.stringify(line)} named no items: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}
