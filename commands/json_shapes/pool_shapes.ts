/** What `baton pool status` says. */
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
  chooser: holder.nullable().describe(
    "who holds the component's lock: a pool that lists and chooses items, or whoever keeps pools from it",
  ),
  elsewhere: z.strictObject({
    host: z.string(),
    pid: count,
    user: z.string(),
    command: z.string(),
    item_path: z.string(),
    component_path: z.string(),
  }).nullable().describe("one that runs with other paths than these: what it works on is not among the items"),
  counts: z.strictObject({ free: count, running: count, done: count, failed: count }),
  items: z.array(z.strictObject({
    item: z.string(),
    state: z.enum(["free", "running", "done", "failed"]),
    holder: holder.nullable().describe("who works on it"),
    ended: z.strictObject({
      result: z.enum(["done", "failed"]),
      what: z.string().describe("how, for people"),
      by: z.string(),
      at: instant,
      until: instant.describe("so long it is remembered"),
    }).nullable().describe("how it ended the last time, where that is remembered"),
  })),
});
export type PoolStatusJson = z.infer<typeof poolStatusShape>;
