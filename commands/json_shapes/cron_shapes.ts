/** Defines the JSON of `baton cron check`, `next`, `reset` and `forget`. */
import * as z from "zod";
import { countShape, objectVersionShape } from "./common_shapes.ts";

const file = z.string().describe("as it was given");
const line = countShape.describe("number of the line, from 1");
const problem = z.strictObject({ line, what: z.string() });
const job = {
  line,
  name: z.string().describe("name of the lock and of its history"),
  schedule: z.string().describe("five fields, in their one spelling"),
  schedule_id: z.string(),
  time_zone: z.string(),
  command: z.string(),
};

export const cronCheckJsonShape = z.strictObject({
  version: objectVersionShape,
  file,
  jobs: z.array(z.strictObject(job)),
  mistakes: z.array(problem),
  warnings: z.array(problem).describe("valid lines that have another effect in baton than in cron"),
});
export type CronCheckJson = z.infer<typeof cronCheckJsonShape>;

export const cronNextJsonShape = z.strictObject({
  version: objectVersionShape,
  file,
  ticks: z.array(z.strictObject({
    tick: z.iso.datetime().describe("UTC"),
    local_time: z.string().describe("in the time zone of the schedule"),
    ...job,
  })).describe("in the order of their times"),
});
export type CronNextJson = z.infer<typeof cronNextJsonShape>;

const serverInstant = z.iso.datetime().describe("UTC, by the servers' clock");

export const cronResetJsonShape = z.strictObject({
  version: objectVersionShape,
  name: z.string(),
  schedules: z.array(z.strictObject({
    schedule: z.string().describe("five fields, in their one spelling"),
    time_zone: z.string(),
    settled_until: serverInstant.describe("before this call"),
    reset_to: serverInstant.nullable().describe("null if the mark was not in the future and therefore was not changed"),
  })),
});
export type CronResetJson = z.infer<typeof cronResetJsonShape>;

export const cronForgetJsonShape = z.strictObject({
  version: objectVersionShape,
  name: z.string(),
  schedules: z.array(z.strictObject({
    schedule: z.string().describe("five fields, in their one spelling"),
    time_zone: z.string(),
    settled_until: serverInstant,
    next: z.iso.datetime().nullable().describe("first tick that is not settled; null if this machine cannot know it"),
    stays: z.string().nullable().describe("why the history was not deleted; null if it was deleted"),
  })),
});
export type CronForgetJson = z.infer<typeof cronForgetJsonShape>;
