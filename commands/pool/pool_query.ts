/** The items of a pool where nothing is going to be run: a `--query` runs under no lock, as they are only looked at. */
import process from "node:process";
import { sendSignal } from "../../src/process/proc/send_signal.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { spawnChild } from "../../src/process/spawn/spawn_child.ts";
import { StopRequest } from "../../src/process/supervise/stopped_by_signal.ts";
import type { PoolPath } from "../../src/coordination/pool/pool_path.ts";
import { abortable } from "../../src/support/abort.ts";
import { systemClock } from "../../src/support/clock.ts";
import { deadlineAfter } from "../../src/support/deadline.ts";
import type { PoolStatusOptions } from "./pool_options.ts";
import { queryFailure, ranTooLong, readItems, readText } from "./pool_source.ts";

/** The items that are named; null for all. `path`: null where only their names count. Rejects as `readItems` does. */
export async function namedItems(
  { component, items }: PoolStatusOptions,
  { path, queryTimeoutMs }: { readonly path: PoolPath | null; readonly queryTimeoutMs: number },
): Promise<readonly string[] | null> {
  if (items === null) return null;
  return await readItems(items, {
    component,
    path,
    signal: new AbortController().signal, // what reads a file or stdin is ended by a signal's default action
    query: (line) => outputOf(line, queryTimeoutMs),
  });
}

/** Rejects IO when it fails or takes longer than `timeoutMs`, BAD_DATA when it prints what cannot be items. */
async function outputOf(line: string, timeoutMs: number): Promise<string> {
  using stop = new StopRequest(processSignals());
  const env = process.env as Record<string, string>;
  const options = { env, ownGroup: true, descriptors: [], hangUpIgnored: false, readsNothing: true, isRead: true };
  const child = await spawnChild(["/bin/sh", "-c", line], options);
  if (child.kind !== "started" || child.output === null) {
    throw queryFailure(line, "message" in child ? child.message : "it could not be started");
  }
  const { pid, output } = child;
  const deadline = deadlineAfter(systemClock(), timeoutMs, {
    signal: stop.signal,
    reason: () => queryFailure(line, ranTooLong(timeoutMs)),
  });
  try {
    const text = await abortable(readText(output, "the output of --query"), deadline.signal);
    const end = await abortable(child.ended, deadline.signal);
    if (end.kind === "exited" && end.code === 0) return text;
    const how = end.kind === "exited"
      ? `it ended with ${end.code}`
      : end.kind === "signaled"
      ? `it was ended by ${end.signal}`
      : end.why;
    throw queryFailure(line, how);
  } catch (thrown) {
    sendSignal(-pid, "SIGKILL"); // the group, which is there as long as anything of it is
    throw thrown;
  } finally {
    deadline.cancel();
  }
}
