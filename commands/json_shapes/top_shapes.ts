/** JSON of top. */
import * as z from "zod";
import { count, instant, version } from "./common_shapes.ts";
import { useHolderShape, useWaiterShape } from "./lock_shapes.ts";

export const topShape = z.strictObject({
  version,
  at: instant,
  servers: z.string().describe("in the form of --servers"),
  root: z.string(),
  uses: z.array(z.strictObject({
    kind: z.enum(["lock", "election", "barrier", "gate", "pool"]),
    name: z.string(),
    holders: count.nullable().describe("null if an ACL hides the number"),
    waiters: count.nullable(),
    first_holder: useHolderShape.nullable().describe(
      "as in who, for a pool the oldest job; null also beyond the 500 longest queues",
    ),
    first_waiter: useWaiterShape.nullable(),
  })),
  topics: z.array(z.strictObject({
    topic: z.string(),
    server: z.string(),
    state: z.enum(["new", "moving", "stored", "sealed", "offline", "unserved"]),
    epoch: count,
  })),
  pubsub_servers: z.array(z.strictObject({
    server: z.string(),
    endpoint: z.string().nullable().describe("null: the server is offline"),
    store: z.string().nullable().describe("ID of the database that it shares; null: a folder"),
    draining: z.boolean(),
    topics: count,
  })),
  stores: z.array(z.strictObject({
    name: z.string(),
    folder: z.string(),
    paused: z.boolean(),
    waiting: count,
    in_flight: count,
    dead: count,
    done: count.describe("since the store was created"),
    oldest: instant.nullable().describe("when the oldest waiting message was accepted"),
    next: instant.nullable().describe("when the next try is due"),
  })).describe("message stores of this machine"),
  processes: z.array(z.strictObject({
    address: z.string(),
    process: z.enum(["keeper", "pubsub server", "pubsub proxy", "retry"]).nullable(),
    error: z.string().nullable().describe("why its metrics could not be read; for people"),
    counters: z.record(z.string(), z.number()).describe("since the start of the process"),
    gauges: z.record(z.string(), z.number()),
  })).describe("processes whose metrics were read"),
  problems: z.array(z.string()).describe("parts that could not be read; for people"),
});
export type TopJson = z.infer<typeof topShape>;
