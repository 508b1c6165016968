/** Defines the JSON of `baton who`, `ls`, `break`, `pool status`, `history` and `explain`. */
import * as z from "zod";
import type {
  CoordinationObjectDetails,
  CoordinationObjectRow,
  HolderRow,
  WaiterRow,
} from "../../src/base/rows/object_row.ts";
import type { PoolDetails, PoolRow } from "../../src/base/rows/pool_row.ts";
import type { ProcessMetricsRow } from "../../src/base/rows/process_row.ts";
import type { RecordedRunRow, ScheduleRow } from "../../src/base/rows/schedule_row.ts";
import {
  countShape,
  type DeepReadonly,
  instantShape,
  longNumberTextShape,
  objectVersionShape,
} from "./common_shapes.ts";
import { pubsubServerShape, pubsubTopicShape } from "./pubsub_shapes.ts";
import { messageStoreShape } from "./retry_shapes.ts";

const scope = z.enum(["user", "machine", "cluster"]).describe(
  "the processes that share it: of this user, of this machine, or of all machines that use the same servers",
);

const kind = z.enum(["lock", "election", "barrier", "gate"]);

const participant = {
  id: z.string().nullable().describe("id for baton break --holder; null for a gate"),
  mode: z.enum(["exclusive", "shared", "permit"]).nullable().describe("null for a barrier or a gate"),
  host: z.string(),
  pid: countShape,
  user: z.string(),
  command: z.string().describe("first word of the command; with --publish-command the whole command"),
  reason: z.string().describe("value of --reason"),
  value: z.string().nullable().describe("value of a candidate; null for other kinds"),
  since: instantShape.nullable().describe("start of the hold or the wait, by the wall clock of its host"),
  session_id: longNumberTextShape.nullable(),
  session_timeout_ms: countShape,
  revoke: z.strictObject({ by: z.string(), reason: z.string() }).nullable().describe("request to release it, if any"),
  warning: z.string().nullable().describe(
    "problem of the holder's command: it cannot be stopped, or no guard watches it; null if there is none",
  ),
};

const holder = z.strictObject({
  ...participant,
  slot: countShape.nullable().describe("number of the permit"),
  rank: countShape.nullable().describe("rank of a barrier's member"),
  fencing_token: longNumberTextShape.nullable(),
}) satisfies z.ZodType<HolderRow>;

const waiter = z.strictObject({
  ...participant,
  place: countShape.describe("place in the queue, from 1"),
  priority: countShape.nullable().describe("the lowest is served first"),
}) satisfies z.ZodType<WaiterRow>;

const details = z.strictObject({
  kind,
  name: z.string(),
  path: z.string().describe("path of its node"),
  limit: countShape.nullable().describe(
    "permits of a lock, null until the first request for one; members that a barrier needs, null if none waits",
  ),
  holders: z.array(holder).describe("in the order of their grants, for a barrier of their ranks"),
  waiters: z.array(waiter).describe("in the order of the queue"),
}) satisfies z.ZodType<CoordinationObjectDetails>;

export const whoJsonShape = z.strictObject({ version: objectVersionShape, scope, ...details.shape });
export type WhoJson = DeepReadonly<z.infer<typeof whoJsonShape>>;

const object = z.strictObject({
  name: z.string(),
  holders: countShape.nullable(),
  waiters: countShape.nullable(),
}) satisfies z.ZodType<CoordinationObjectRow>;

const listedPool = object.extend({
  done: countShape.describe("items with a stored result"),
  failed: countShape,
}) satisfies z.ZodType<PoolRow>;

const process = z.strictObject({
  address: z.string(),
  process: z.string().nullable().describe("keeper, pubsub server, pubsub proxy or retry"),
  error: z.string().nullable().describe("why its metrics could not be read; for people"),
  counters: z.record(z.string(), z.number()).describe("since the start of the process"),
  gauges: z.record(z.string(), z.number()),
  disk_free_bytes: z.number().nullable().describe("free space of the disk of its data; null if it stores none"),
}) satisfies z.ZodType<ProcessMetricsRow>;

const serverInstant = z.iso.datetime().describe("UTC, by the servers' clock");
const tick = z.iso.datetime().describe("time of the tick, UTC");
const scheduleId = z.string().describe("id of the schedule");

const schedule = z.strictObject({
  name: z.string().describe("name of the lock"),
  schedule_id: scheduleId,
  schedule: z.string().describe("five fields, in their one spelling"),
  time_zone: z.string(),
  settled_until: serverInstant.describe("every tick up to this time was claimed, skipped or missed, UTC"),
  next: z.iso.datetime().nullable().describe(
    "first tick that is not settled, UTC; null if there is none within ten years",
  ),
  overdue: z.boolean().describe("that tick is in the past"),
  running: z.strictObject({
    tick,
    attempt: countShape,
    host: z.string(),
    pid: countShape,
    began: serverInstant,
    lost: z.boolean().describe("its holder no longer has the lock, and its end was not recorded"),
  }).nullable(),
  retry: z.strictObject({
    tick,
    attempt: countShape,
    from: serverInstant.nullable().describe("a call can begin the try from then on; null: at any time"),
    until: serverInstant.nullable().describe("no call begins the try after this time; null: not known"),
  }).nullable().describe("the next try of a tick that failed, or was claimed and not begun"),
}) satisfies z.ZodType<ScheduleRow>;

export const lsJsonShape = z.strictObject({
  version: objectVersionShape,
  scope,
  locks: z.array(object).describe("holders and waiters are null if an ACL hides them from this client"),
  elections: z.array(object).describe(
    "holders is 1 while there is a leader; waiters are the other candidates",
  ),
  barriers: z.array(object).describe("holders are running members, waiters wait for the start"),
  gates: z.array(object).describe("closed gates"),
  pools: z.array(listedPool).describe("pools that run or have stored results; holders are running jobs"),
  schedules: z.array(schedule),
  topics: z.array(pubsubTopicShape),
  servers: z.array(pubsubServerShape).describe("of publish/subscribe"),
  stores: z.array(messageStoreShape).describe("message stores of this user"),
  processes: z.array(process).describe("processes whose metrics were read"),
  problems: z.array(z.string()).describe("parts that could not be read; for people"),
  details: z.array(details).optional().describe(
    "only with --long: holders and waiters of everything but pools, as baton who prints them",
  ),
});
export type LsJson = DeepReadonly<z.infer<typeof lsJsonShape>>;

export const processIdentityFields = { id: z.string(), host: z.string(), pid: countShape, user: z.string() };

export const breakJsonShape = z.strictObject({
  version: objectVersionShape,
  name: z.string(),
  outcome: z.enum(["released", "asked", "deleted"]).describe(
    "asked: not released within the wait; deleted: taken with --force, the command may still run",
  ),
  holder: z.strictObject(processIdentityFields),
});
export type BreakJson = z.infer<typeof breakJsonShape>;

const poolHolder = z.strictObject({
  ...processIdentityFields,
  command: z.string(),
  since: instantShape.nullable(),
  fencing_token: longNumberTextShape,
});

const pool = z.strictObject({
  component: z.string(),
  component_holder: poolHolder.nullable().describe(
    "holder of the component's lock: a call that chooses items, or another program that holds the lock",
  ),
  conflicting_run: z.strictObject({
    host: z.string(),
    pid: countShape,
    user: z.string(),
    command: z.string(),
    item_path: z.string(),
    component_path: z.string(),
  }).nullable().describe("a call that runs with other paths; items that it processes are not listed here"),
  counts: z.strictObject({ free: countShape, running: countShape, done: countShape, failed: countShape }),
  items: z.array(z.strictObject({
    item: z.string(),
    state: z.enum(["free", "running", "done", "failed"]),
    holder: poolHolder.nullable().describe("call that processes the item"),
    last_result: z.strictObject({
      result: z.enum(["done", "failed"]),
      what: z.string().describe("text for people"),
      by: z.string(),
      at: instantShape,
      until: instantShape.describe("time until which the result is kept"),
    }).nullable().describe("result of the last run, if it is still kept"),
  })),
}) satisfies z.ZodType<PoolDetails>;

export const poolStatusJsonShape = z.strictObject({ version: objectVersionShape, ...pool.shape });

const recordedDurations = z.strictObject({
  count: countShape,
  sum_ms: countShape,
  up_to_ms: z.array(z.strictObject({ ms: countShape, times: countShape.describe("how many took at most this long") })),
});

const run = z.strictObject({
  result: z.enum(["done", "failed", "lost", "stopped", "skipped", "missed"]),
  schedule_id: scheduleId.nullable(),
  tick: tick.nullable().describe("time of the tick, UTC; null: the lock was taken without a tick"),
  until: z.iso.datetime().nullable().describe("last tick of a range, UTC"),
  count: countShape.describe("number of ticks"),
  attempt: countShape.describe("number of the try, from 1; 0 for what was no try of a tick"),
  host: z.string(),
  pid: countShape,
  user: z.string(),
  token: longNumberTextShape.nullable().describe("fencing token"),
  waited_ms: countShape,
  began: serverInstant.nullable(),
  ended: serverInstant.nullable(),
  late_ms: countShape.nullable().describe("time from the tick to the start"),
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  why: z.string().nullable().describe("reason, for people"),
}) satisfies z.ZodType<RecordedRunRow>;

export const historyJsonShape = z.strictObject({
  version: objectVersionShape,
  name: z.string(),
  kind: z.enum(["lock", "election", "pool"]),
  schedules: z.array(schedule),
  running: z.array(z.strictObject({
    host: z.string(),
    pid: countShape,
    user: z.string(),
    token: longNumberTextShape.nullable(),
    began: serverInstant,
  })).describe("recorded holds that go on; without ticks"),
  refused: z.strictObject({
    count: countShape.describe("calls that found the lock busy"),
    last: z.strictObject({ at: serverInstant, host: z.string(), pid: countShape }).nullable(),
  }),
  counters: z.strictObject({
    since: serverInstant.nullable().describe("start of the counters; null: there is no history"),
    results: z.strictObject({
      done: countShape,
      failed: countShape,
      lost: countShape,
      stopped: countShape,
      skipped: countShape,
      missed: countShape,
    }),
    waited: recordedDurations,
    held: recordedDurations,
    late: recordedDurations,
    last_done: serverInstant.nullable(),
  }).describe("of all records, also of those that are no longer kept"),
  records: z.array(run).describe("oldest first"),
});
export const explainJsonShape = z.strictObject({
  version: objectVersionShape,
  name: z.string(),
  state: z.enum(["free", "held", "contended"]).describe("contended: calls wait, and there is no holder at the moment"),
  events: z.array(z.strictObject({
    at: serverInstant,
    what: z.enum(["ended", "left out", "held", "waits", "refused", "next"]),
    event: z.string().describe("for people"),
  })).describe("oldest first"),
  explanation: z.string().describe("for people"),
  unknown: z.array(z.string()).describe("what the servers cannot tell"),
});
export type ExplainJson = z.infer<typeof explainJsonShape>;
export type HistoryJson = DeepReadonly<z.infer<typeof historyJsonShape>>;
