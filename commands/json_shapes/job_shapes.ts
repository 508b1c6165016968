/** JSON of check, fence zk, and --status-fd (`StatusReport` of src/base/terminal/status_report.ts). */
import * as z from "zod";
import { count, token, version } from "./common_shapes.ts";

export const checkShape = z.strictObject({
  version,
  names: z.array(z.string()).describe("the locks of the command"),
  held: z.boolean().describe("with --at-least: held for longer than that"),
  remaining_ms: count.nullable().describe("certain remaining time; null if only the server could be asked"),
});
export type CheckJson = z.infer<typeof checkShape>;

export const fenceShape = z.strictObject({
  version,
  action: z.enum(["set", "create", "delete"]),
  path: z.string().describe("for a sequential node with its number"),
  node_version: count.nullable().describe("the node's version after this write; null for a deleted node"),
});
export type FenceJson = z.infer<typeof fenceShape>;

/** `StatusReport` of src/base/terminal/status_report.ts. */
export const statusShape = z.strictObject({
  version,
  command: z.string().describe("lock, elect, barrier, pool"),
  names: z.array(z.string()),
  reason: z.string().describe(
    "command_exited, command_signaled, all_arrived, stopped_by_signal, or an error code in lower case: " +
      "lock_busy, lock_lost, …",
  ),
  exit_code: z.int().nullable().describe("exit code of baton; null if a signal ended it"),
  signal: z.string().nullable().describe("signal that ended baton: it came during the wait, or ended the command"),
  command_status: z.strictObject({ code: z.int().nullable(), signal: z.string().nullable() }).nullable()
    .describe("exit status of the command; null if none ran"),
  fencing_tokens: z.array(token).nullable().describe("in the order of the names; null if the lock was not acquired"),
  waited_ms: count.nullable(),
  held_ms: count.nullable(),
  items: z.strictObject({
    claimed: count.describe("items whose locks this call took"),
    done: count,
    failed: count,
    busy: count.describe("items that another call processes"),
    skipped: count.describe("items that completed earlier, within --done-ttl"),
    remaining: count.describe("items that were not tried, because this call had no room for them"),
  }).optional()
    .describe("of a pool only: what became of its items"),
  message: z.string().nullable().describe("message on stderr, if any"),
});
