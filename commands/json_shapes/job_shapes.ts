/** What is said to a job under a lock, and of it: check, fence zk, and the line of --status-fd, which src/terminal/status_report.ts writes. */
import * as z from "zod";
import { count, token, version } from "./common_shapes.ts";

export const checkShape = z.strictObject({
  version,
  names: z.array(z.string()).describe("the locks of the job"),
  held: z.boolean().describe("with --at-least: and for longer than that"),
  remaining_ms: count.nullable().describe("for certain; null where only the server could be asked"),
});
export type CheckJson = z.infer<typeof checkShape>;

export const fenceShape = z.strictObject({
  version,
  action: z.enum(["set", "create", "delete"]),
  path: z.string().describe("of a sequential node with its number"),
  node_version: count.nullable().describe("the node's version by this write; null for one that was deleted"),
});
export type FenceJson = z.infer<typeof fenceShape>;

/** `StatusReport` of src/terminal/status_report.ts. */
export const statusShape = z.strictObject({
  version,
  command: z.string().describe("lock, elect, barrier, pool"),
  names: z.array(z.string()),
  reason: z.string().describe(
    "command_exited, command_signaled, stopped_by_signal, or a failure's name in small letters: lock_busy, lock_lost, …",
  ),
  exit_code: z.int().nullable().describe("what baton exits with; null when it dies of signal"),
  signal: z.string().nullable().describe("the signal that stopped baton while it waited"),
  command_status: z.strictObject({ code: z.int().nullable(), signal: z.string().nullable() }).nullable()
    .describe("the child's end; null when none ran"),
  fencing_tokens: z.array(token).nullable().describe("in the order of the names; null when the lock was not had"),
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
  message: z.string().nullable().describe("the sentence on stderr, if there was one"),
});
