/** JSON of the retry processor. */
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
  id: z.string().describe("unique everywhere; also the Idempotency-Key, unless request.headers have one"),
  name,
  state,
  key: z.string().nullable(),
  tries: count.describe("tries that ended since the message was accepted or redriven"),
  crashes: count.describe("tries that ended because the processor died; counted separately"),
  reason: z.enum(["exhausted", "too_old", "final", "crashed", "damaged", "purged"]).nullable().describe(
    "why the message is dead or dropped",
  ),
  last_error: z.string().nullable().describe("for people; the text may change"),
  first_at: instant.describe("when the message was accepted"),
  last_at: instant.nullable().describe("the end of its last try"),
  next_at: instant.nullable().describe("when the next try is due; null: there is none"),
  bytes: count.describe("of the body"),
  forwarding: z.enum(["none", "pending", "sending", "forwarded"]).describe(
    "delivery of a dead letter to --dead-letter: pending and sending are still in the store, forwarded has left it",
  ),
  forwarding_error: z.string().nullable().describe("why a pending dead letter could not be delivered; for people"),
});

export const retryListShape = z.strictObject({
  version,
  name,
  messages: z.array(message),
  more: z.boolean().describe("there are more than --limit"),
});
export type RetryListJson = z.infer<typeof retryListShape>;

const content = {
  command: z.array(z.string()).nullable().describe(
    "the message's own command; null: run --exec, --url or --topic is used",
  ),
  cwd: z.string().nullable(),
  request: z.strictObject({
    method: z.string(),
    origin: z.string().nullable().describe("start of the URL, of call --url; null: run --url names the backend"),
    path: z.string(),
    headers: z.array(z.array(z.string())).describe(
      "names and values, in their order; credentials are [redacted] (--redact)",
    ),
  }).nullable().describe("of a message that came by HTTP"),
};

export const retryShowShape = z.strictObject({
  version,
  ...message.shape,
  ...content,
  body: z.string().nullable().describe("base64; null: it is no longer stored"),
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
  folder: z.string().describe("or the URL of the database"),
  paused: z.boolean(),
  states: z.record(state, z.strictObject({ count, bytes: count })).describe(
    "done, dropped and cancelled: since the store was created",
  ),
  oldest: instant.nullable().describe("when the oldest waiting message was accepted"),
  next: instant.nullable().describe("when the next try is due"),
  dead_letters: z.strictObject({ pending: count, error: z.string().nullable() }).describe(
    "dead letters that are not delivered to --dead-letter yet, and the last error; for people",
  ),
  disk: z.strictObject({ used_bytes: count, free_bytes: count.nullable() }).describe(
    "bytes; of a store in a database: the size of its messages, and null",
  ),
});
export type RetryStatsJson = z.infer<typeof retryStatsShape>;

export const retryVerifyShape = z.strictObject({
  version,
  folder: z.string().describe("or the URL of the database"),
  messages: count,
  bytes: count,
  problems: z.array(z.string()).describe("empty: no damage found"),
});
export type RetryVerifyJson = z.infer<typeof retryVerifyShape>;

export const retryExplainShape = z.strictObject({
  version,
  tries: z.array(z.strictObject({
    try: count.describe("1 is the first try"),
    min_delay_ms: count.describe("minimum delay after the previous try"),
    max_delay_ms: count.describe("maximum delay; the same with jitter none"),
  })),
  max_tries: count,
  min_total_ms: count.describe("minimum time from the first try to the last"),
  max_total_ms: count.describe("maximum time, not counting the duration of the tries"),
});
export type RetryExplainJson = z.infer<typeof retryExplainShape>;

const { id, key, reason, tries, crashes, last_error, first_at, last_at } = message.shape;

export const retryDeadLetterShape = z.strictObject({
  version,
  id,
  name,
  key,
  reason,
  tries,
  crashes,
  last_error,
  first_at,
  last_at,
  ...content,
  body: z.string().describe("base64"),
});
