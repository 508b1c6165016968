/** Defines the JSON of `baton check` and of --status-fd. */
import * as z from "zod";
import { countShape, longNumberTextShape, objectVersionShape } from "./common_shapes.ts";

export const checkJsonShape = z.strictObject({
  version: objectVersionShape,
  names: z.array(z.string()).describe("the locks of the command"),
  held: z.boolean().describe("true if the lock is held; with --at-least, if it has been held for longer than that"),
  remaining_ms: countShape.nullable().describe("certain remaining time; null if only the server could be asked"),
});
export type CheckJson = z.infer<typeof checkJsonShape>;

/** The JSON of `StatusReport` in src/base/terminal/status_report.ts. */
export const statusJsonShape = z.strictObject({
  version: objectVersionShape,
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
  fencing_tokens: z.array(longNumberTextShape).nullable().describe(
    "in the order of the names; null if the lock was not acquired",
  ),
  waited_ms: countShape.nullable(),
  held_ms: countShape.nullable(),
  items: z.strictObject({
    claimed: countShape.describe("items whose locks this call took"),
    done: countShape,
    failed: countShape,
    busy: countShape.describe("items that another call processes"),
    skipped: countShape.describe("items that other calls of the list have done, or completed within --done-ttl"),
    remaining: countShape.describe("items that were not tried, because this call had no room for them"),
  }).optional()
    .describe("of a pool only: what became of its items"),
  message: z.string().nullable().describe("message on stderr, if any"),
});
