/** What `--query` prints where nothing is going to be run: under no lock, as it is only looked at. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { BatonError, messageOf } from "../src/errors.ts";
import { itemsBytesMax } from "../src/recipes/pool_items.ts";

/** Rejects IO when it fails, prints too much, or takes longer than `timeoutMs`. */
export async function outputOf(line: string, timeoutMs: number): Promise<string> {
  try {
    const options = { timeout: timeoutMs, maxBuffer: itemsBytesMax };
    return (await promisify(execFile)("/bin/sh", ["-c", line], options)).stdout;
  } catch (thrown) {
    throw new BatonError("IO", `--query named no items: ${messageOf(thrown)}`, { cause: thrown });
  }
}
