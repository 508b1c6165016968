/** JSON output about servers, files, settings, the program: doctor, config, keeper verify, pubsub keygen, version. */
import * as z from "zod";
import { count, token, version } from "./common_shapes.ts";

export const doctorShape = z.strictObject({
  version,
  servers: z.string().describe("in the form of --servers"),
  session_timeout_ms: count.describe("granted by the servers"),
  locks: count.describe("number of locks that were checked"),
  elections: count,
  findings: z.array(z.strictObject({
    kind: z.enum(["warning", "problem"]).describe(
      "warning: works now, but may fail later; problem: does not work correctly",
    ),
    where: z.string(),
    what: z.string().describe("text for people; it may change"),
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
  files: z.array(z.string()).describe("files that were read, sorted by precedence"),
  settings: z.array(z.strictObject({
    key: z.string().describe("key in a file"),
    value: z.string().nullable().describe(
      "value in the form of the flag; (secret) for a secret; null if there is none",
    ),
    origin: origin.describe("origin of the value; kind is flag, environment, file or default"),
  })),
});
export type ConfigJson = z.infer<typeof configShape>;

export const keeperVerifyShape = z.strictObject({
  version,
  folder: z.string(),
  nodes: count,
  sessions: count,
  bytes: count,
  zxid: token.describe("last transaction, as decimal text"),
});
export type KeeperVerifyJson = z.infer<typeof keeperVerifyShape>;

export const keygenShape = z.strictObject({
  version,
  public_key: z.string().length(40).describe("in Z85"),
  secret_key: z.string().length(40).optional().describe("in Z85; only without FILE"),
  file: z.string().optional().describe("file with the key pair, as given"),
  public_file: z.string().optional().describe("file with the public key; only if both files were created"),
});
export type KeygenJson = z.infer<typeof keygenShape>;

export const versionShape = z.strictObject({
  version,
  release: z.string().describe("the version of baton, such as 0.1.0"),
  commit: z.string().nullable().describe(
    "the commit that was compiled, with -dirty if it was changed; null if it is not known",
  ),
  date: z.iso.datetime().nullable().describe(
    "date of the commit, or SOURCE_DATE_EPOCH of the build; null if not known",
  ),
  platform: z.string().describe("such as linux-x64"),
});
export type VersionJson = z.infer<typeof versionShape>;
