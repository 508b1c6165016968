/** What is said of servers, files and settings: doctor, config check and show, keeper verify, pubsub keygen. */
import * as z from "zod";
import { count, token, version } from "./common_shapes.ts";

export const doctorShape = z.strictObject({
  version,
  servers: z.string().describe("as --servers takes it"),
  session_timeout_ms: count.describe("as the servers grant it"),
  locks: count.describe("so many were looked at"),
  elections: count,
  findings: z.array(z.strictObject({
    kind: z.enum(["warning", "problem"]).describe(
      "warning: it works, and may not for long; problem: it does not work as it should",
    ),
    where: z.string(),
    what: z.string().describe("for people: the words may change"),
  })),
});
export type DoctorJson = z.infer<typeof doctorShape>;

const origin = z.union([
  z.strictObject({ kind: z.enum(["flag", "environment"]), name: z.string() }),
  z.strictObject({ kind: z.literal("file"), name: z.string(), line: count.nullable() }),
  z.strictObject({ kind: z.literal("default") }),
]);

export const configShape = z.strictObject({
  version,
  files: z.array(z.string()).describe("that were read, the strongest first"),
  settings: z.array(z.strictObject({
    key: z.string().describe("as in a file"),
    value: z.string().nullable().describe("as a flag would write it; (secret) for a secret; null where there is none"),
    origin: origin.describe("where it comes from: kind is flag, environment, file or default"),
  })),
});
export type ConfigJson = z.infer<typeof configShape>;

export const keeperVerifyShape = z.strictObject({
  version,
  folder: z.string(),
  nodes: count,
  sessions: count,
  bytes: count,
  zxid: token.describe("the last transaction, a decimal text"),
});
export type KeeperVerifyJson = z.infer<typeof keeperVerifyShape>;

export const keygenShape = z.strictObject({
  version,
  public_key: z.string().length(40).describe("in Z85"),
  secret_key: z.string().length(40).optional().describe("in Z85; only where there is no FILE"),
  file: z.string().optional().describe("with the pair, as it was given"),
  public_file: z.string().optional().describe("with the public key; only where both files were made"),
});
export type KeygenJson = z.infer<typeof keygenShape>;
