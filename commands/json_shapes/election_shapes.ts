/**
 * Defines the JSON of elections and gates: `baton leader`, `leader --watch`, `resign` and `barrier
 * --set|--lift|--wait`.
 */
import * as z from "zod";
import { countShape, instantShape, longNumberTextShape, objectVersionShape } from "./common_shapes.ts";
import { processIdentityFields } from "./lock_shapes.ts";

const grant = {
  index: z.int().min(1).describe("number of the leader, from 1"),
  token: longNumberTextShape.describe("the leader's fencing token, a decimal text"),
  value: z.string().describe("value of the leader"),
  since: instantShape,
  id: z.string().describe("the leader's id, as baton who shows it"),
};

export const leaderJsonShape = z.strictObject({
  version: objectVersionShape,
  name: z.string(),
  path: z.string().describe("path of its node"),
  leader: z.strictObject(grant).nullable().describe("null if there is no leader"),
});
export type LeaderJson = z.infer<typeof leaderJsonShape>;

export const leaderLineJsonShape = z.union([
  z.strictObject({ version: objectVersionShape, ...grant }).describe("a new leader"),
  z.strictObject({ version: objectVersionShape, vacant: z.literal(true) }).describe("no leader"),
  z.strictObject({
    version: objectVersionShape,
    missed: countShape.nullable().describe("number of missed leaders; null if unknown"),
  }).describe("some leaders were missed"),
]);
export type LeaderLineJson = z.infer<typeof leaderLineJsonShape>;

export const resignJsonShape = z.strictObject({
  version: objectVersionShape,
  name: z.string(),
  resigned: z.boolean().describe("false if the leader was asked, but had not stepped down when the wait was over"),
  leader: z.strictObject({ ...processIdentityFields, value: z.string() }),
});
export type ResignJson = z.infer<typeof resignJsonShape>;

export const gateJsonShape = z.strictObject({
  version: objectVersionShape,
  name: z.string(),
  gate: z.enum(["open", "closed"]),
  changed: z.boolean().describe("true if this call changed the gate"),
});
export type GateJson = z.infer<typeof gateJsonShape>;
