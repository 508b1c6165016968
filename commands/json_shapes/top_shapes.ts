/** JSON of `baton top`. */
import * as z from "zod";
import { countShape, instantShape, versionShape } from "./common_shapes.ts";
import { useHolderJsonShape, useWaiterJsonShape } from "./lock_shapes.ts";

export const topJsonShape = z.strictObject({
  version: versionShape,
  at: instantShape,
  servers: z.string().describe("in the form of --servers"),
  root: z.string(),
  uses: z.array(z.strictObject({
    kind: z.enum(["lock", "election", "barrier", "gate", "pool"]),
    name: z.string(),
    holders: countShape.nullable().describe("null if an ACL hides the number"),
    waiters: countShape.nullable(),
    first_holder: useHolderJsonShape.nullable().describe(
      "as in who, for a pool the oldest job; null also beyond the 500 longest queues",
    ),
    first_waiter: useWaiterJsonShape.nullable(),
  })),
  topics: z.array(z.strictObject({
    topic: z.string(),
    server: z.string(),
    state: z.enum(["new", "moving", "stored", "sealed", "offline", "unserved"]),
    epoch: countShape,
  })),
  pubsub_servers: z.array(z.strictObject({
    server: z.string(),
    endpoint: z.string().nullable().describe("null: the server is offline"),
    store: z.string().nullable().describe("ID of the database that it shares; null: a folder"),
    draining: z.boolean(),
    topics: countShape,
  })),
  stores: z.array(z.strictObject({
    name: z.string(),
    folder: z.string(),
    paused: z.boolean(),
    waiting: countShape,
    in_flight: countShape,
    dead: countShape,
    done: countShape.describe("since the store was created"),
    oldest: instantShape.nullable().describe("when the oldest waiting message was accepted"),
    next: instantShape.nullable().describe("when the next try is due"),
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
export type TopJson = z.infer<typeof topJsonShape>;
