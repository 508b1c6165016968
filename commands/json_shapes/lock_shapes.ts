/** What the commands say that look at locks and what is like them: who, ls, break. */
import * as z from "zod";
import { count, instant, token, version } from "./common_shapes.ts";

const kind = z.enum(["lock", "election", "barrier", "gate"]);

const somebody = {
  id: z.string().nullable().describe("as baton break --holder takes it; null for a gate, which belongs to nobody"),
  mode: z.enum(["exclusive", "shared", "permit"]).nullable().describe("null at a barrier or a gate"),
  host: z.string(),
  pid: count,
  user: z.string(),
  command: z.string().describe("its first word; with --publish-command all of it"),
  reason: z.string().describe("as --reason gave it"),
  value: z.string().nullable().describe("what a candidate of an election offers; null for the others"),
  since: instant.nullable().describe("when it began to hold, or to wait, by its host's wall clock"),
  session_id: token.nullable(),
  session_timeout_ms: count,
  revoke: z.strictObject({ by: z.string(), reason: z.string() }).nullable().describe("somebody asks for it back"),
};

export const whoShape = z.strictObject({
  version,
  kind,
  name: z.string(),
  path: z.string().describe("its node on the server"),
  limit: count.nullable().describe(
    "permits of a lock, null when nobody has asked for one; how many of a barrier start together, null when nobody waits",
  ),
  holders: z.array(z.strictObject({
    ...somebody,
    slot: count.nullable().describe("the number of a permit"),
    rank: count.nullable().describe("at a barrier"),
    fencing_token: token.nullable(),
  })).describe("in the order of their grants, at a barrier of their ranks"),
  waiters: z.array(z.strictObject({
    ...somebody,
    place: count.describe("1 is the next"),
    priority: count.nullable().describe("the lowest is the first"),
  })).describe("in the order of the queue"),
});
export type WhoJson = z.infer<typeof whoShape>;

const use = { name: z.string(), holders: count.nullable(), waiters: count.nullable() };

export const lsShape = z.strictObject({
  version,
  locks: z.array(z.strictObject(use)).describe("holders and waiters are null where an ACL hides them from this client"),
  elections: z.array(z.strictObject(use)).describe(
    "holders is 1 while somebody leads; waiters are the other candidates",
  ),
  barriers: z.array(z.strictObject(use)).describe("holders run, waiters have entered and wait for the start"),
  gates: z.array(z.strictObject(use)).describe("those that are closed"),
  pools: z.array(z.strictObject(use)).describe("that somebody runs, or that remember items; holders are jobs that run"),
});
export type LsJson = z.infer<typeof lsShape>;

/** Of somebody else, where a command tells whom it has dealt with. */
export const person = { id: z.string(), host: z.string(), pid: count, user: z.string() };

export const breakShape = z.strictObject({
  version,
  name: z.string(),
  outcome: z.enum(["released", "asked", "deleted"]).describe(
    "asked: not given back within the wait; deleted: taken with --force, and the old job may still run",
  ),
  holder: z.strictObject(person),
});
export type BreakJson = z.infer<typeof breakShape>;
