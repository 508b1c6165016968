/** JSON output of `baton pool status`. */
import * as z from "zod";
import { count, instant, token, version } from "./common_shapes.ts";

const holder = z.strictObject({
  id: z.string(),
  host: z.string(),
  pid: count,
  user: z.string(),
  command: z.string(),
  since: instant.nullable(),
  fencing_token: token,
});

export const poolStatusShape = z.strictObject({
  version,
  component: z.string(),
  component_holder: holder.nullable().describe(
    "holder of the component's lock: a call that chooses items, or another program that holds the lock",
  ),
  conflicting_run: z.strictObject({
    host: z.string(),
    pid: count,
    user: z.string(),
    command: z.string(),
    item_path: z.string(),
    component_path: z.string(),
  }).nullable().describe("a call that runs with other paths; items that it processes are not listed here"),
  counts: z.strictObject({ free: count, running: count, done: count, failed: count }),
  items: z.array(z.strictObject({
    item: z.string(),
    state: z.enum(["free", "running", "done", "failed"]),
    holder: holder.nullable().describe("call that processes the item"),
    last_result: z.strictObject({
      result: z.enum(["done", "failed"]),
      what: z.string().describe("text for people"),
      by: z.string(),
      at: instant,
      until: instant.describe("time until which the result is kept"),
    }).nullable().describe("result of the last run, if it is still kept"),
  })),
});
export type PoolStatusJson = z.infer<typeof poolStatusShape>;
