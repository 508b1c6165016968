/** Defines the JSON of `baton retry-processor`. */
import * as z from "zod";
import type { ListedMessageRow, StoreRow } from "../../src/base/rows/store_row.ts";
import { countShape, type DeepReadonly, instantShape, objectVersionShape } from "./common_shapes.ts";

const name = z.string().describe("of the message store");
const state = z.enum(["waiting", "in_flight", "done", "dead", "dropped", "cancelled"]);

export const retrySubmitJsonShape = z.strictObject({
  version: objectVersionShape,
  name,
  stored: countShape,
  first: z.string().nullable().describe("the id of the first message; null: there was none"),
  last: z.string().nullable(),
});
export type RetrySubmitJson = z.infer<typeof retrySubmitJsonShape>;

const message = z.strictObject({
  id: z.string().describe("unique everywhere; also the Idempotency-Key, unless request.headers have one"),
  name,
  state,
  key: z.string().nullable(),
  tries: countShape.describe("tries that ended since the message was accepted or redriven"),
  crashes: countShape.describe("tries that ended because the processor died; counted separately"),
  reason: z.enum(["exhausted", "too_old", "final", "crashed", "damaged", "purged"]).nullable().describe(
    "why the message is dead or dropped",
  ),
  last_error: z.string().nullable().describe("for people; the text may change"),
  first_at: instantShape.describe("when the message was accepted"),
  last_at: instantShape.nullable().describe("the end of its last try"),
  next_at: instantShape.nullable().describe("when the next try is due; null: there is none"),
  bytes: countShape.describe("of the body"),
  forwarding: z.enum(["none", "kept", "pending", "sending", "forwarded"]).describe(
    "delivery of a dead letter to --dead-letter: kept is never delivered, none by the next run or serve with the " +
      "option; pending and sending are still in the store, forwarded has left it",
  ),
  forwarding_error: z.string().nullable().describe("why a pending dead letter could not be delivered; for people"),
}) satisfies z.ZodType<ListedMessageRow>;

export const retryListJsonShape = z.strictObject({
  version: objectVersionShape,
  name,
  messages: z.array(message),
  more: z.boolean().describe("there are more than --limit"),
});
export type RetryListJson = DeepReadonly<z.infer<typeof retryListJsonShape>>;

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

export const retryShowJsonShape = z.strictObject({
  version: objectVersionShape,
  ...message.shape,
  ...content,
  body: z.string().nullable().describe("base64; null: it is no longer stored"),
});
export type RetryShowJson = DeepReadonly<z.infer<typeof retryShowJsonShape>>;

export const retryChangesJsonShape = z.strictObject({
  version: objectVersionShape,
  name,
  changed: countShape.describe("messages"),
  refused: z.array(z.strictObject({
    id: z.string(),
    state: z.enum([...state.options, "unknown", "forwarded"]).describe("forwarded: the dead letter has left the store"),
  })),
});
export type RetryChangesJson = z.infer<typeof retryChangesJsonShape>;

export const messageStoreShape = z.strictObject({
  name,
  folder: z.string().describe("or the URL of the database"),
  paused: z.boolean(),
  states: z.record(state, z.strictObject({ count: countShape, bytes: countShape })).describe(
    "done, dropped and cancelled: since the store was created",
  ),
  oldest: instantShape.nullable().describe("when the oldest waiting message was accepted"),
  next: instantShape.nullable().describe("when the next try is due"),
  processors: countShape.nullable().describe(
    "how many processors (retry-processor run or serve) try its messages now; null if this machine cannot know it",
  ),
  dead_letters: z.strictObject({ pending: countShape, forwarded: countShape, error: z.string().nullable() }).describe(
    "dead letters that are not delivered to --dead-letter yet, those that are, and the last error; for people",
  ),
  disk: z.strictObject({ used_bytes: countShape, free_bytes: countShape.nullable() }).describe(
    "bytes; of a store in a database: the size of its messages, and null",
  ),
}) satisfies z.ZodType<StoreRow>;

export const retryStatsJsonShape = z.strictObject({ version: objectVersionShape, ...messageStoreShape.shape });
export type RetryStatsJson = DeepReadonly<z.infer<typeof retryStatsJsonShape>>;

export const retryVerifyJsonShape = z.strictObject({
  version: objectVersionShape,
  folder: z.string().describe("or the URL of the database"),
  messages: countShape,
  bytes: countShape,
  problems: z.array(z.string()).describe("empty: no damage found"),
});
export type RetryVerifyJson = z.infer<typeof retryVerifyJsonShape>;

export const retryExplainJsonShape = z.strictObject({
  version: objectVersionShape,
  tries: z.array(z.strictObject({
    try: countShape.describe("1 is the first try"),
    min_delay_ms: countShape.describe("minimum delay after the previous try"),
    max_delay_ms: countShape.describe("maximum delay; the same with jitter none"),
  })),
  max_tries: countShape,
  min_total_ms: countShape.describe("minimum time from the first try to the last"),
  max_total_ms: countShape.describe("maximum time, not counting the duration of the tries"),
});
export type RetryExplainJson = z.infer<typeof retryExplainJsonShape>;

const { id, key, reason, tries, crashes, last_error, first_at, last_at } = message.shape;

export const retryDeadLetterJsonShape = z.strictObject({
  version: objectVersionShape,
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
