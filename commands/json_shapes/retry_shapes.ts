/** What is said of stored messages and their store. */
import * as z from "zod";
import { count, instant, version } from "./common_shapes.ts";

const name = z.string().describe("of the message store");
const state = z.enum(["waiting", "in_flight", "done", "dead", "dropped", "cancelled"]);

export const retrySubmitShape = z.strictObject({
  version,
  name,
  stored: count,
  first: z.string().nullable().describe("the id of the first message; null: there was none"),
  last: z.string().nullable(),
});
export type RetrySubmitJson = z.infer<typeof retrySubmitShape>;

const message = z.strictObject({
  id: z.string().describe("nobody else's, ever; also the Idempotency-Key, unless request.headers have one"),
  name,
  state,
  key: z.string().nullable(),
  tries: count.describe("that have ended since it was accepted or redriven"),
  crashes: count.describe("tries that ended with their processor; counted apart"),
  reason: z.enum(["exhausted", "too_old", "final", "crashed", "damaged", "purged"]).nullable().describe(
    "why it is dead, or dropped",
  ),
  last_error: z.string().nullable().describe("for people: the words may change"),
  first_at: instant.describe("when it was accepted"),
  last_at: instant.nullable().describe("the end of its last try"),
  next_at: instant.nullable().describe("when the next try is due; null: there is none"),
  bytes: count.describe("of the body"),
  forwarding: z.enum(["none", "pending", "sending", "forwarded"]).describe(
    "a dead letter that has another place to go: owed and begun are still in the store, there has left it",
  ),
  forwarding_error: z.string().nullable().describe("what is in the way of a letter that is owed; for people"),
});
export type RetryMessageJson = z.infer<typeof message>;

export const retryListShape = z.strictObject({
  version,
  name,
  messages: z.array(message),
  more: z.boolean().describe("there are more than --limit"),
});
export type RetryListJson = z.infer<typeof retryListShape>;

export const retryShowShape = z.strictObject({
  version,
  ...message.shape,
  command: z.array(z.string()).nullable().describe("its own command; null: run --exec or --url says"),
  cwd: z.string().nullable(),
  request: z.strictObject({
    method: z.string(),
    path: z.string(),
    headers: z.array(z.array(z.string())).describe(
      "names and values, in their order; credentials are [redacted] (--redact)",
    ),
  }).nullable().describe("of a message that came by HTTP"),
  body: z.string().nullable().describe("base64; null: it is not kept any more"),
});
export type RetryShowJson = z.infer<typeof retryShowShape>;

export const retryChangesShape = z.strictObject({
  version,
  name,
  changed: count.describe("messages"),
  refused: z.array(z.strictObject({
    id: z.string(),
    state: z.enum([...state.options, "unknown", "forwarded"]).describe("forwarded: the dead letter has left the store"),
  })),
});
export type RetryChangesJson = z.infer<typeof retryChangesShape>;

export const retryStatsShape = z.strictObject({
  version,
  name,
  folder: z.string(),
  paused: z.boolean(),
  states: z.record(state, z.strictObject({ count, bytes: count })).describe(
    "done, dropped and cancelled: since the store was made",
  ),
  oldest: instant.nullable().describe("when the oldest message that waits was accepted"),
  next: instant.nullable().describe("when the next try is due"),
  dead_letters: z.strictObject({ pending: count, error: z.string().nullable() }).describe(
    "dead letters that have another place to go, and what is in the way; error is for people",
  ),
  disk: z.strictObject({ used_bytes: count, free_bytes: count }).describe("bytes"),
});
export type RetryStatsJson = z.infer<typeof retryStatsShape>;

export const retryVerifyShape = z.strictObject({
  version,
  folder: z.string(),
  messages: count,
  bytes: count,
  problems: z.array(z.string()).describe("none: all is well"),
});
export type RetryVerifyJson = z.infer<typeof retryVerifyShape>;

export const retryExplainShape = z.strictObject({
  version,
  tries: z.array(z.strictObject({
    try: count.describe("1 is the first try"),
    min_delay_ms: count.describe("the least time since the try before"),
    max_delay_ms: count.describe("the most: with jitter none the same"),
  })),
  max_tries: count,
  min_total_ms: count.describe("from the first try to the last, at least"),
  max_total_ms: count.describe("at most, tries themselves not counted"),
});
export type RetryExplainJson = z.infer<typeof retryExplainShape>;

export const retryDeadLetterShape = z.strictObject({
  version,
  id: z.string(),
  name,
  key: z.string().nullable(),
  reason: z.string().nullable(),
  tries: count,
  crashes: count,
  last_error: z.string().nullable(),
  first_at: instant,
  last_at: instant.nullable(),
  command: z.array(z.string()).nullable(),
  cwd: z.string().nullable(),
  request: z.strictObject({ method: z.string(), path: z.string(), headers: z.array(z.array(z.string())) }).nullable(),
  body: z.string().describe("base64"),
});
