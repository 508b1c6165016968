/** Defines the JSON of `baton doctor`, `config show`, `keeper verify`, `pubsub keygen` and `version`. */
import * as z from "zod";
import { findingIds } from "../../src/base/rows/finding.ts";
import { countShape, longNumberTextShape, objectVersionShape } from "./common_shapes.ts";

export const doctorJsonShape = z.strictObject({
  version: objectVersionShape,
  servers: z.string().describe("in the form of --servers"),
  session_timeout_ms: countShape.describe("granted by the servers"),
  locks: countShape.describe("number of locks that were checked"),
  elections: countShape,
  findings: z.array(z.strictObject({
    id: z.enum(findingIds).describe("identifier, as --ignore takes it"),
    severity: z.enum(["warning", "problem"]).describe(
      "warning: works now, but may fail later; problem: does not work correctly",
    ),
    where: z.string(),
    what: z.string().describe("text for people; it may change"),
    action: z.string().describe("what mends it: a command or an instruction for people; it may change"),
  })),
});
export type DoctorJson = z.infer<typeof doctorJsonShape>;

const origin = z.union([
  z.strictObject({ kind: z.enum(["flag", "environment"]), name: z.string() }),
  z.strictObject({ kind: z.literal("file"), name: z.string(), line: countShape.nullable() }),
  z.strictObject({ kind: z.literal("default") }),
]);

export const configJsonShape = z.strictObject({
  version: objectVersionShape,
  files: z.array(z.string()).describe("files that were read, sorted by precedence"),
  settings: z.array(z.strictObject({
    key: z.string().describe("key in a file"),
    value: z.string().nullable().describe(
      "value in the form of the flag; (secret) for a secret; null if there is none",
    ),
    origin: origin.describe("origin of the value; kind is flag, environment, file or default"),
  })),
});
export type ConfigJson = z.infer<typeof configJsonShape>;

export const keeperVerifyJsonShape = z.strictObject({
  version: objectVersionShape,
  folder: z.string(),
  nodes: countShape,
  sessions: countShape,
  bytes: countShape,
  zxid: longNumberTextShape.describe("last transaction, as decimal text"),
});
export type KeeperVerifyJson = z.infer<typeof keeperVerifyJsonShape>;

export const keygenJsonShape = z.strictObject({
  version: objectVersionShape,
  public_key: z.string().length(40).describe("in Z85"),
  secret_key: z.string().length(40).optional().describe("in Z85; only without FILE"),
  file: z.string().optional().describe("file with the key pair, as given"),
  public_file: z.string().optional().describe("file with the public key; only if both files were created"),
});
export type KeygenJson = z.infer<typeof keygenJsonShape>;

export const versionJsonShape = z.strictObject({
  version: objectVersionShape,
  release: z.string().describe("the version of baton, such as 0.1.0"),
  commit: z.string().nullable().describe(
    "the commit that was compiled, with -dirty if it was changed; null if it is not known",
  ),
  date: z.iso.datetime().nullable().describe(
    "date of the commit, or SOURCE_DATE_EPOCH of the build; null if not known",
  ),
  platform: z.string().describe("such as linux-x64"),
  paths: z.array(z.strictObject({
    what: z.string().describe("text for people; it may change"),
    path: z.string(),
    exists: z.boolean(),
  })).optional().describe("the paths in use; only with --verbose"),
});
export type VersionJson = z.infer<typeof versionJsonShape>;
