/** What the commands about elections and gates say: leader, its lines with --watch, resign, barrier --set|--lift|--wait. */
import * as z from "zod";
import { count, instant, token, version } from "./common_shapes.ts";
import { person } from "./lock_shapes.ts";

const grant = {
  index: z.int().min(1).describe("counts the leaders, from 1"),
  token: token.describe("the leader's fencing token, a decimal text"),
  value: z.string().describe("what the leader offers"),
  since: instant,
  id: z.string().describe("the leader's id, as baton who shows it"),
};

export const leaderShape = z.strictObject({
  version,
  name: z.string(),
  path: z.string().describe("its node on the server"),
  leader: z.strictObject(grant).nullable().describe("null when nobody leads"),
});
export type LeaderJson = z.infer<typeof leaderShape>;

export const leaderLineShape = z.union([
  z.strictObject({ version, ...grant }).describe("somebody leads"),
  z.strictObject({ version, vacant: z.literal(true) }).describe("nobody leads"),
  z.strictObject({
    version,
    missed: count.nullable().describe("so many leaders were missed; null: more than can be told"),
  }).describe("some are not remembered any more"),
]);
export type LeaderLineJson = z.infer<typeof leaderLineShape>;

export const resignShape = z.strictObject({
  version,
  name: z.string(),
  resigned: z.boolean().describe("false: it was asked, and had not given up when the wait was over"),
  leader: z.strictObject({ ...person, value: z.string() }),
});
export type ResignJson = z.infer<typeof resignShape>;

export const gateShape = z.strictObject({
  version,
  name: z.string(),
  gate: z.enum(["open", "closed"]),
  changed: z.boolean().describe("by this call"),
});
export type GateJson = z.infer<typeof gateShape>;
